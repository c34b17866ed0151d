"""The programs that the shell rules know, and what their arguments are to them: tables.

A program that stands in no table is unknown, and a guard asks about it.
"""

from __future__ import annotations

from enum import StrEnum


class Use(StrEnum):
    """What a program does with the paths among its arguments."""

    NONE = "none"  # it takes any text and opens nothing
    READ = "read"
    WRITE = "write"
    DELETE = "delete"
    BUILD = "build"  # runs the code of the workspace, as developers do all day


_USES = {
    Use.NONE: """
        echo printf true false test [ : sleep basename dirname seq expr shift wait jobs
        type which whereis uname whoami id groups nproc uptime free df tty clear tput
        declare typeset local readonly export unset umask ulimit getconf locale arch lscpu times
        lsb_release printenv env set shopt read exit return break continue yes fg bg disown getopts
        command builtin exec eval coproc time nohup nice ionice timeout stdbuf setsid taskset
        xargs trap alias unalias function let mapfile readarray pwd logname cal bc dc factor numfmt
        watch parallel flock script fc column env_parallel catchsegv unbuffer xvfb-run
        caffeinate strace ltrace valgrind tr hostnamectl timedatectl sw_vers cd pushd popd dirs for
    """,
    Use.READ: """
        cat head tail less more wc sort uniq cut grep egrep fgrep rg ag ack ls tree stat file du
        diff cmp comm md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum sum md5
        shasum xxd hexdump od strings nl tac rev fold fmt paste join expand unexpand jq yq sed awk
        gawk mawk nawk find fd readlink realpath base64 base32 zcat zless zgrep bzcat xzcat bat
        exa eza lsd tokei cloc scc nm objdump readelf size ldd otool look tsort pr csvcut csvlook
        delta glow mdcat colordiff sdiff diff3 lsof lsblk ps pgrep pidof pstree top vmstat iostat
        date hostname source . help history dos2unix unix2dos sqlite3
    """,
    Use.WRITE: """
        touch mkdir cp mv ln tee truncate install chmod chown chgrp unzip zip tar gzip gunzip bzip2
        bunzip2 xz unxz zstd unzstd split csplit mktemp mkfifo dd patch rsync setfacl xattr ditto
        sponge ctags etags iconv cpio ar
    """,
    Use.DELETE: "rm rmdir unlink shred",
    Use.BUILD: """
        make gmake cmake ctest cpack ninja meson bazel bazelisk buck2 just task cargo rustc rustfmt
        rustup clippy-driver go gofmt goimports golangci-lint staticcheck npm npx yarn pnpm bun
        bunx node deno tsc ts-node tsx eslint prettier jest vitest mocha webpack vite rollup
        esbuild next biome python python3 pypy pypy3 pytest py.test tox nox ruff black mypy pyright
        isort flake8 pylint bandit coverage uv uvx poetry pip pip3 pipenv pipx hatch pdm rye
        pre-commit sphinx-build mkdocs alembic django-admin flask uvicorn gunicorn ipython jupyter
        gcc g++ cc c++ clang clang++ clang-format clang-tidy ld as javac java jar mvn gradle
        gradlew mvnw kotlinc scala sbt dotnet msbuild ruby bundle bundler rake rspec rails rubocop
        gem irb php composer phpunit perl lua luajit Rscript ghc cabal stack elixir mix erl rebar3
        swift swiftc xcodebuild zig nim julia ocaml dune docker docker-compose podman kubectl helm
        terraform tofu git gh protoc buf shellcheck shfmt hadolint yamllint markdownlint actionlint
        sh bash dash zsh ksh ash fish autoconf automake configure pkg-config ccache gdb nvm pyenv
        conda mamba doxygen latexmk pdflatex xelatex bibtex djlint sqlfluff stylelint commitlint
        husky lerna nx turbo playwright cypress storybook tailwindcss sass postcss babel vue-tsc
        svelte-check ng vsce twine build
    """,
}
USES: dict[str, Use] = {name: use for use, names in _USES.items() for name in names.split()}

FETCHERS = frozenset(
    "curl wget aria2c axel lynx w3m links http https httpie xh fetch nc ncat netcat socat telnet "
    "ftp sftp tftp scp ssh dig nslookup host ping traceroute whois rclone s3cmd aws gsutil gcloud "
    "az mosh nmap masscan openssl sendmail mail mutt irssi ngrok cloudflared".split()
)
DECODERS = frozenset("base64 base32 xxd uudecode gunzip zcat gzip bzcat xzcat rev tr od".split())
INTERPRETERS = frozenset(
    "python python2 python3 pypy pypy3 ipython node nodejs deno bun perl ruby irb php lua luajit "
    "Rscript R tclsh wish expect osascript pwsh powershell gdb julia elixir erl ghci scala groovy "
    "ts-node tsx awk gawk mawk nawk sed m4".split()
)
RUNNING_OPTIONS = frozenset(  # by which programs of all kinds are told to run another one
    "--pager --pre --editor --browser --shell --script-shell --shell-escape --exec --exec-batch "
    "--execute --command --call --compress-program --use-compress-program --to-command "
    "--preprocessor -wrapper --plugin-dir --hostname-bin --diff-program --strip-program "
    "--rsync-path --rsh-command --rmt-command --info-script --new-volume-script "
    "--checkpoint-action --unzip-command --viewer --runner --init-hook --post-renderer "
    "--run_under --workspace_status_command --init-script --chooser --node-options --enable-exec "
    "--process-code --lesskey-content --lesskey-src --eval-command --external-diff".split()
)
WHOLE_OPTIONS = frozenset(  # that only look like the beginning of one of those
    "--comp --compress --checkpoint --diff --enable --external --host --hostname --info --init "
    "--node --plugin --post --process --rsync --run --script --strip --unzip --view --workspace "
    "--new --use --check".split()
)
PRIVILEGE = frozenset(
    "sudo su doas pkexec runuser gosu su-exec setpriv newgrp sg chroot unshare nsenter capsh "
    "setcap useradd userdel usermod adduser deluser groupadd passwd chpasswd chsh visudo vipw "
    "polkit-agent-helper-1 machinectl".split()
)
RUINOUS = frozenset(  # no developer's command, whatever follows
    "mkfs wipefs fdisk sfdisk gdisk sgdisk parted mkswap cryptsetup lvremove vgremove pvremove "
    "zpool hdparm blkdiscard badblocks nvme flashrom".split()
)
SYSTEM = frozenset(
    "shutdown reboot halt poweroff init telinit systemctl service launchctl rc-service mount "
    "umount swapoff swapon modprobe insmod rmmod sysctl iptables ip6tables nft ufw firewall-cmd "
    "apt apt-get dpkg yum dnf rpm pacman apk zypper brew snap flatpak update-rc.d chkconfig "
    "timedatectl hostnamectl loginctl ip ifconfig route dmsetup losetup setenforce dscl "
    "defaults".split()
)
PERSISTENCE = frozenset("crontab at batch systemd-run update-alternatives incrontab".split())
KILLERS = frozenset("kill pkill killall killall5 xkill skill fuser".split())

# Variables that make programs run something else, or read it from elsewhere.
DANGEROUS_VARIABLES = frozenset(
    "PATH IFS HOME CDPATH ENV BASH_ENV SHELLOPTS BASHOPTS PROMPT_COMMAND PS0 PS1 PS4 SHELL EDITOR "
    "VISUAL PAGER MANPAGER LESSOPEN LESSCLOSE BROWSER GIT_SSH GIT_SSH_COMMAND GIT_EDITOR "
    "GIT_SEQUENCE_EDITOR GIT_EXTERNAL_DIFF GIT_PAGER GIT_ASKPASS SSH_ASKPASS GIT_PROXY_COMMAND "
    "GIT_EXEC_PATH GIT_TEMPLATE_DIR GIT_DIR GIT_WORK_TREE GIT_CONFIG GIT_CONFIG_GLOBAL "
    "GIT_CONFIG_COUNT PYTHONSTARTUP PYTHONHOME PYTHONBREAKPOINT PYTHONWARNINGS PYTHONINSPECT "
    "NODE_OPTIONS PERL5OPT PERL5LIB PERL5DB RUBYOPT RUBYLIB JAVA_TOOL_OPTIONS _JAVA_OPTIONS "
    "JDK_JAVA_OPTIONS CLASSPATH MAKEFLAGS GNUMAKEFLAGS TAR_OPTIONS RSYNC_RSH FIGNORE GLOBIGNORE "
    "HISTFILE PIP_INDEX_URL PIP_EXTRA_INDEX_URL NPM_CONFIG_REGISTRY npm_config_registry "
    "RUSTC_WRAPPER RUSTC CARGO_HOME GOFLAGS GOPROXY DOCKER_HOST KUBECONFIG AWS_PROFILE "
    "http_proxy https_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY BASH_FUNC GREP_OPTIONS "
    "BASH_ALIASES BASH_CMDS".split()
)
DANGEROUS_PREFIXES = ("LD_", "DYLD_", "GIT_CONFIG_", "BASH_FUNC_", "SUDO_")
