//! Finds commands that only read, but through a socket, which the sandbox of reading commands does not have.
//!
//! A command that asks the kernel about its network gets the socket for that if its arguments cannot change anything.
//! A command that asks a service does not: the sandbox cannot keep a service from making changes, so the command needs
//! approval.

use caro_shell::Script;

/// The socket that a command that only reads needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Need {
    /// No socket.
    Nothing,
    /// A socket to ask the kernel.
    Kernel,
    /// A connection to a service of this machine, by the client of this name.
    Service(String),
}

/// Programs that are clients of a service.
const CLIENTS: &[&str] = &[
    "amixer",
    "bluetoothctl",
    "brightnessctl",
    "busctl",
    "crictl",
    "dbus-monitor",
    "dconf",
    "docker",
    "docker-compose",
    "dunstctl",
    "gdbus",
    "gsettings",
    "helm",
    "hostnamectl",
    "hyprctl",
    "i3-msg",
    "incus",
    "kubectl",
    "localectl",
    "loginctl",
    "lpstat",
    "lxc",
    "machinectl",
    "makoctl",
    "minikube",
    "nerdctl",
    "networkctl",
    "nmcli",
    "notify-send",
    "pacmd",
    "pactl",
    "playerctl",
    "podman",
    "pw-cli",
    "pw-dump",
    "pw-top",
    "qdbus",
    "resolvectl",
    "screen",
    "snap",
    "ssh-add",
    "swaymsg",
    "systemctl",
    "timedatectl",
    "tmux",
    "udisksctl",
    "upower",
    "vagrant",
    "virsh",
    "wmctrl",
    "wpctl",
    "xinput",
    "xrandr",
    "xset",
    "zellij",
];

/// Options of `ip` that only affect its output. Source: ip(8).
const IP_OUTPUT_OPTIONS: &[&str] = &[
    "-4",
    "-6",
    "-br",
    "-brief",
    "-c",
    "-color",
    "-d",
    "-details",
    "-h",
    "-human",
    "-j",
    "-json",
    "-o",
    "-oneline",
    "-p",
    "-pretty",
    "-s",
    "-statistics",
    "-stats",
    "-t",
    "-ts",
];

/// Returns the socket that a script that only reads needs.
pub(super) fn need(script: &Script) -> Need {
    let mut need = Need::Nothing;
    for command in &script.commands {
        let Some(name) = command.name() else { continue };
        let args: Vec<&str> = command.args().iter().map(|word| word.text.as_str()).collect();
        if CLIENTS.contains(&name) && !matches!(args[..], ["--version" | "--help"]) {
            return Need::Service(name.to_owned());
        }
        if asks_kernel(name, &args) {
            need = Need::Kernel;
        }
    }
    need
}

/// True if the command asks the kernel and cannot do anything else with that socket.
fn asks_kernel(name: &str, args: &[&str]) -> bool {
    match name {
        "ip" => {
            let options = args.iter().take_while(|a| a.starts_with('-')).count();
            let only_prints = |option: &&str| IP_OUTPUT_OPTIONS.contains(option);
            args[..options].iter().all(only_prints)
                && match args[options..] {
                    [] | ["netns", ..] => false,
                    [_] => true,
                    [_, verb, ..] => matches!(verb, "sh" | "show" | "l" | "ls" | "list" | "lst" | "get"),
                }
        }
        // -K ends connections
        "ss" => args
            .iter()
            .all(|a| if a.starts_with("--") { !a.starts_with("--k") } else { !a.starts_with('-') || !a.contains('K') }),
        "hostname" => matches!(args, ["-I" | "-i" | "-A" | "--all-ip-addresses" | "--ip-address" | "--all-fqdns"]),
        "lsusb" => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use caro_shell::{Dialect, parse};

    #[test]
    fn a_command_gets_the_kernel_socket_only_if_it_cannot_change_anything() {
        let need = |text: &str| need(&parse(text, Dialect::Bash));
        for asks in [
            "ip addr",
            "ip a",
            "ip -br a",
            "ip -4 route show table all",
            "ip route get 192.0.2.1",
            "ss -tlnp",
            "ss --tcp --listening | wc -l",
            "hostname -I",
            "ls; lsusb",
        ] {
            assert_eq!(need(asks), Need::Kernel, "{asks}");
        }
        for does in [
            "ip link delete eth0",
            "ip route del default",
            "ip -b file",
            "ip -batch file",
            "ip link set eth0 up",
            "ip netns exec x rm y",
            "ss -K dst 192.0.2.1",
            "ss -tK",
            "ss --kill",
            "hostname new",
            "ls",
            "ip",
        ] {
            assert_eq!(need(does), Need::Nothing, "{does}");
        }
        for client in ["docker ps", "ip a; systemctl status x", "nmcli device"] {
            assert!(matches!(need(client), Need::Service(_)), "{client}");
        }
        assert_eq!(need("docker --version"), Need::Nothing);
    }
}
