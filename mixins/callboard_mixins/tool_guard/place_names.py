"""Which places hold credentials, run by themselves, or are for everybody to read: tables."""

from __future__ import annotations

import re

# Each is matched against a resolved absolute path; those of a home against any home.
CREDENTIALS = re.compile(
    r"/\.(?:ssh|aws|gnupg|azure|kube|password-store|mozilla|thunderbird|terraform\.d|electrum)(?:/|$)"
    r"|/\.config/(?:gcloud|gh|hub|google-chrome|chromium|op|doctl|rclone|sops)(?:/|$)"
    r"|/\.local/share/keyrings(?:/|$)|/Library/Keychains(?:/|$)"
    r"|/\.docker/config\.json$|/\.cargo/credentials|/\.gem/credentials$|/\.m2/settings"
    r"|/\.(?:netrc|pypirc|npmrc|yarnrc\.yml|git-credentials|pgpass|my\.cnf|vault-token|boto|s3cfg)$"
    r"|/\.[a-z_]*history$|/\.huggingface/token$|/\.cache/huggingface/token$"
    r"|^/etc/(?:g?shadow|sudoers|krb5\.keytab|ssl/private|ssh/[^/]*key|wireguard|security/opasswd)"
    r"|^/(?:var/)?run/(?:secrets|credentials|docker\.sock|containerd)|^/var/lib/(?:kubelet|sss)(?:/|$)"
    r"|^/proc/(?:[^/]+/)*(?:environ|mem|auxv|kcore|maps|fd|root|cwd|exe)(?:/|$)"
    r"|^/dev/(?:k?mem|port)$",
    re.IGNORECASE,
)
SECRETS = re.compile(  # inside a workspace: files that are meant for one machine only
    r"(?:^|/)(?:\.env(?:rc)?(?:\.(?!example$|sample$|template$|dist$|test$)[\w.-]+)?"
    r"|\.(?:netrc|pypirc|git-credentials|pgpass|htpasswd|vault-token)"
    r"|id_(?:rsa|dsa|ecdsa|ed25519)|[^/]*\.(?:pem|p12|pfx|key|keystore|jks|kdbx|ppk)"
    r"|credentials(?:\.json|\.ya?ml|\.toml)?|secrets?\.(?:json|ya?ml|toml|env)"
    r"|service[-_]?account[^/]*\.json|[^/]*\.tfstate)$",
    re.IGNORECASE,
)
STARTED = re.compile(  # written there, text is run by itself later, or decides who may log in
    r"/\.(?:bashrc|bash_profile|bash_login|bash_logout|bash_aliases|profile|zshrc|zshenv|zprofile"
    r"|zlogin|kshrc|cshrc|tcshrc|xinitrc|xprofile|xsession|inputrc|vimrc|gitconfig|tmux\.conf"
    r"|screenrc|gdbinit|pythonrc|irbrc|npmrc|curlrc|wgetrc)$"
    r"|/\.ssh(?:/|$)|/\.config/(?:autostart|systemd|fish|git|nvim|environment\.d)(?:/|$)"
    r"|/\.local/share/(?:systemd|applications|dbus-1)/|/\.local/bin/|/\.vim/"
    r"|/Library/Launch(?:Agents|Daemons)(?:/|$)|/(?:site|user)customize\.py$|/site-packages/[^/]*\.pth$"
    r"|^/etc(?:/|$)|^/var/spool/(?:cron|at)|^/(?:usr/)?lib/systemd|^/(?:usr/(?:local/)?)?s?bin/"
    r"|^/lib(?:64)?/|^/usr/lib|^/boot(?:/|$)|^/proc/sys|^/sys/",
    re.IGNORECASE,
)
HOOKS = re.compile(  # inside a workspace: what git runs or lives on, and what editors start
    r"(?:^|/)\.git(?:$|/(?!(?:[^/]+\.lock|(?:COMMIT_EDIT|MERGE_|SQUASH_)MSG|index\.lock)$))"
    r"|(?:^|/)(?:\.envrc|\.mcp\.json|\.gitmodules|\.vscode/(?:settings|tasks|launch|mcp)\.json)$"
    r"|(?:^|/)\.(?:devcontainer|husky|githooks)(?:/|$)",
    re.IGNORECASE,
)
DEVICES = re.compile(
    r"^/dev/(?:sd|hd|vd|xvd|nvme|mmcblk|disk|mapper|md|dm-|loop|sr|zd|rdisk|mem|kmem|port|ram)"
)
NETWORK = re.compile(r"^/dev/(?:tcp|udp)(?:/|$)")
STREAMS = re.compile(
    r"^/dev/(?:null|zero|full|u?random|stdin|stdout|stderr|tty|ptmx)$|^/dev/fd/\d+$"
    r"|^/proc/self/fd/[012]$"
)
PUBLIC = re.compile(  # to read
    r"^/(?:usr|bin|sbin|lib|lib32|lib64|opt|nix/store|Library/Developer)(?:/|$)"
    r"|^/etc/(?:hosts|os-release|hostname|resolv\.conf|timezone|localtime|lsb-release|shells"
    r"|mime\.types|debian_version|alpine-release|redhat-release|issue|services|protocols"
    r"|nsswitch\.conf|ssl/certs|ld\.so\.conf|alternatives)(?:/|$)"
    r"|^/proc/(?:cpuinfo|meminfo|version|uptime|loadavg|stat|mounts|filesystems|cmdline)$"
    r"|^/sys/(?:fs/cgroup|devices/system/cpu|class/net)(?:/|$)"
)
