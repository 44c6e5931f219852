import type { NvidiaTrouble } from './nvidia.ts';

interface Symptom {
  readonly pattern: RegExp;
  readonly code: string;
  readonly message: string;
}

const NO_PERMISSION = 'The NVIDIA driver refuses this user: add the user to the group of /dev/nvidia*.';

/** What the driver's tools print when something is wrong, most telling first; texts as printed by nvidia-smi. */
const SYMPTOMS: readonly Symptom[] = [
  {
    pattern: /driver\/library version mismatch/i,
    code: 'nvidia-driver-mismatch',
    message:
      'The NVIDIA driver was updated but the old one is still loaded: restart the machine, or unload and load the nvidia modules.',
  },
  {
    pattern: /couldn'?t communicate with the nvidia driver|driver not loaded|nvidia driver is not loaded/i,
    code: 'nvidia-driver-not-running',
    message:
      'The NVIDIA driver is not running: load it with `sudo modprobe nvidia`, or install the driver for this kernel. It is tried again by itself.',
  },
  {
    pattern: /gpu is lost|fallen off the bus/i,
    code: 'nvidia-gpu-lost',
    message:
      'An NVIDIA card has dropped off the PCI bus: restart the machine, and check its power and seating if it comes back.',
  },
  {
    pattern: /unable to determine the device handle/i,
    code: 'nvidia-gpu-lost',
    message:
      'The driver can no longer reach an NVIDIA card: see `sudo dmesg | grep -i xid`, then restart the machine.',
  },
  {
    pattern: /gpu requires reset|gpu recovery action\s*:\s*(?!none|n\/a)\S+|requires a reset/i,
    code: 'nvidia-reset-required',
    message:
      'An NVIDIA card asks for a reset: stop what uses it and run `sudo nvidia-smi --gpu-reset`, or restart.',
  },
  {
    pattern: /no devices were found/i,
    code: 'nvidia-no-devices',
    message:
      'The NVIDIA driver runs but finds no card it can drive: see `sudo dmesg | grep -i nvrm` for the reason.',
  },
  {
    pattern: /gpu access blocked by the operating system/i,
    code: 'nvidia-blocked',
    message:
      'The operating system blocks access to the card (seen in WSL): update the Windows driver and run `wsl --shutdown`.',
  },
  {
    pattern: /is not a valid field to query/i,
    code: 'nvidia-smi-field',
    message: 'This nvidia-smi does not know a field it was asked for: update the driver.',
  },
  {
    pattern: /infoROM is corrupted/i,
    code: 'nvidia-inforom',
    message:
      'The card reports a corrupted infoROM; its figures may still be right. The maker of the card can repair it.',
  },
  {
    pattern: /failed to initialize nvml: insufficient permissions/i,
    code: 'nvidia-no-permission',
    message: NO_PERMISSION,
  },
  {
    // NVIDIA's container toolkit, issue 48: the devices leave the container's cgroup.
    pattern: /failed to initialize nvml: unknown error/i,
    code: 'nvidia-nvml-failed',
    message:
      'The kernel keeps this process from the NVIDIA cards. In a container that happens when the host reloads systemd: start the container anew. It is tried again by itself.',
  },
  {
    pattern: /failed to initialize nvml/i,
    code: 'nvidia-nvml-failed',
    message:
      'NVIDIA’s management library did not start: check the driver with `nvidia-smi`. It is tried again by itself.',
  },
];

/** nvidia-smi's documented exit codes. */
const EXIT_CODES: Readonly<Record<number, readonly [code: string, message: string]>> = {
  4: ['nvidia-no-permission', NO_PERMISSION],
  6: ['nvidia-no-devices', 'The NVIDIA driver runs but finds no card.'],
  8: ['nvidia-power-cable', 'A card’s power cables are not attached: check them.'],
  9: [
    'nvidia-driver-not-running',
    'The NVIDIA driver is not running: load it with `sudo modprobe nvidia`, or install it. It is tried again by itself.',
  ],
  10: ['nvidia-interrupt', 'The kernel reports an interrupt problem with a card: see `sudo dmesg`.'],
  12: ['nvidia-no-nvml', 'NVIDIA’s management library is missing: install the driver’s utilities.'],
  15: ['nvidia-gpu-lost', 'An NVIDIA card has dropped off the PCI bus: restart the machine.'],
};

/** What an nvidia-smi text tells of trouble; empty when it tells of none. Each code once. */
export function nvidiaTroublesIn(text: string): readonly NvidiaTrouble[] {
  const found = new Map<string, NvidiaTrouble>();
  for (const { pattern, code, message } of SYMPTOMS) {
    if (pattern.test(text) && !found.has(code)) found.set(code, { code, message });
  }
  return [...found.values()];
}

/**
 * The trouble of a run that failed, always one: from its text, else its exit code. `exitCode` null:
 * it could not be started or was ended after its time.
 */
export function nvidiaSmiTrouble(exitCode: number | null, text: string): NvidiaTrouble {
  const inText = nvidiaTroublesIn(text)[0];
  if (inText !== undefined) return inText;
  const known = exitCode === null ? undefined : EXIT_CODES[exitCode];
  if (known !== undefined) return { code: known[0], message: known[1] };
  const said = text.trim().split('\n')[0]?.slice(0, 200) ?? '';
  const what =
    exitCode === null
      ? 'nvidia-smi gave no answer'
      : exitCode === 0
        ? 'nvidia-smi’s answer can’t be read'
        : `nvidia-smi ended with code ${exitCode}`;
  return {
    code:
      exitCode === null
        ? 'nvidia-smi-no-answer'
        : exitCode === 0
          ? 'nvidia-smi-unreadable'
          : `nvidia-smi-exit-${exitCode}`,
    message: `${what}${said === '' ? '' : ` (${said})`}: run it in a terminal to see why. It is tried again by itself.`,
  };
}
