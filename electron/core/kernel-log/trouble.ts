/**
 * What a line of the kernel's log says of the graphics driver or of memory. Pure.
 *
 *   hung       the card's scheduler or a ring does not answer: what is on it may stay for ever
 *   reset      the card was reset: what was in its memory is lost
 *   eviction   the driver could not move memory out, or ran out of it
 *   display    the link to a monitor failed while the driver was short
 *   program    a program's own fault on the card: it was ended, nothing else
 *   hardware   the card itself
 *   host       the system ran out of memory and ended something
 */
export type TroubleKind = 'hung' | 'reset' | 'eviction' | 'display' | 'program' | 'hardware' | 'host';

export interface KernelTrouble {
  readonly kind: TroubleKind;
  /** A clause: what has happened. */
  readonly what: string;
  /** `0000:03:00.0`; null: the line names no card. */
  readonly pciAddress: string | null;
  readonly pid: number | null;
  /** NVIDIA's number of it; null: none. */
  readonly xid: number | null;
}

type Rule = readonly [
  pattern: RegExp,
  kind: TroubleKind,
  what: string | ((match: RegExpExecArray) => string),
];

/**
 * Wordings of several kernels: "response" became "respond to", `[drm:… [amdgpu]] *ERROR*` became
 * `amdgpu 0000:03:00.0: amdgpu:` (drivers/gpu/drm/amd/amdgpu: mes_v1*.c, amdgpu_job.c, amdgpu_device.c,
 * amdkfd; drivers/gpu/drm/ttm; mm/oom_kill.c; drivers/gpu/drm/{i915,xe}; NVIDIA's open modules, issues
 * 848 and 1078).
 */
const RULES: readonly Rule[] = [
  [
    /\bMES(?:\(\d+\))? failed to respon(?:se|d to) msg=(\w+)/,
    'hung',
    ([, message]) => `the card's scheduler does not answer (MES, ${message})`,
  ],
  [/\bMES might be in unrecoverable state\b/, 'hung', "the card's scheduler is beyond recovery (MES)"],
  [/\bring (\w[\w.]*) timeout\b/, 'hung', ([, ring]) => `the ring ${ring} of the card has timed out`],
  [
    /\bRing \w[\w.]* reset failed\b|\bIP block:\S+ is hung\b|\bGPU recovery (?:failed|disabled)\b/,
    'hung',
    'the card hangs',
  ],
  [
    /\bGPU HANG: ecode\b|\bTimedout job\b.*\bseqno=|\bEngine reset: (?:engine_class|guc)/,
    'hung',
    'the card hangs',
  ],
  [/\bdevice (?:is )?wedged\b(?!, but recovered)/, 'hung', 'the card is wedged'],
  [/\bVRAM is lost\b/, 'reset', 'the card was reset and all its memory is lost'],
  [/\bGPU reset begin\b|\bMODE[12] reset\b|\bBACO reset\b/, 'reset', 'the card is being reset'],
  // The program's name stands on the same line, or on the next one.
  [
    /\[(?:gfx|mm)hub\d*\](?: (?:no-)?retry)? page fault \((?:.* for process (\S+) pid [1-9])?/,
    'program',
    ([, name]) => `${name ?? 'a program'} asked the card for memory that is not there (page fault)`,
  ],
  [/\bDP_LANE_COUNT_SET\b/, 'display', 'the link to a monitor could not be set up (DP_LANE_COUNT_SET)'],
  [
    /\bFailed to (?:evict (?:queue|process queues)|quiesce KFD)\b|\bfailed to remove hardware queue from MES\b/i,
    'eviction',
    'a compute process could not be moved off the card',
  ],
  [
    /\[TTM\].*(?:failed|no space|eviction)|\bttm\b.*\b(?:failed to evict|eviction failed|no memory)\b/i,
    'eviction',
    'the driver could not move memory out (TTM)',
  ],
  [
    /\bNot enough memory for command submission\b|\bfailed to (?:allocate|pin|validate) .*\b(?:VRAM|BO)\b.*-12\b/i,
    'eviction',
    'the driver has run out of memory for what was sent to the card',
  ],
  // nvidia-drm before the compositor's windows break, and NVIDIA's resource manager when a program got none.
  [
    /\[nvidia-drm\].*\bFailed to allocate NVKMS (?:video )?memory\b/,
    'eviction',
    'the driver has no video memory left for a window or a screen',
  ],
  [
    /\bNVRM: .*\bNV_ERR_NO_MEMORY\b/,
    'eviction',
    'the driver has run out of memory for what a program asked of the card',
  ],
  // xe ends all that a program does on the card where it can not bring its memory back (preempt_rebind_work_func).
  [
    /\bVM worker error: -12\b/,
    'eviction',
    "a program's memory found no room on the card again, and its work was ended (ENOMEM)",
  ],
  [
    /\bVM worker error: (-\d+)/,
    'program',
    ([, error]) => `a program's work on the card was ended (${error})`,
  ],
  // Counted against what ROCm may hold of the system's memory at all, models of an APU included (svm_range_new).
  [
    /\bSVM mapping failed, exceeds resident system memory limit\b/,
    'eviction',
    "a compute program may hold no more of the system's memory (KFD)",
  ],
  [
    /\bOut of memory: Killed process (\d+) \(([^)]*)\)/,
    'host',
    ([, , name]) => `the system ran out of memory and ended ${name}`,
  ],
  [
    /\bMemory cgroup out of memory: Killed process (\d+) \(([^)]*)\)/,
    'host',
    ([, , name]) => `a memory limit was reached and ${name} was ended`,
  ],
];

/** Consequences of a process that was ended, ours to end included: no trouble of their own. */
const QUIET_XIDS = new Set([45]);
const PROGRAM_XIDS = new Set([13, 31, 32, 43, 68, 69]);
const HUNG_XIDS = new Map([
  [8, 'the card does not come to an end (watchdog)'],
  [61, "the card's own controller has stopped"],
  [62, "the card's own controller has stopped"],
  [109, 'a context switch on the card has timed out'],
  [119, "the card's GSP does not answer"],
  [120, "the card's GSP has failed"],
  [143, "the card's GSP could not be started"],
]);

/** null: nothing to tell. */
export function kernelTrouble(line: string): KernelTrouble | null {
  const xid = nvidia(line);
  if (xid !== undefined) return xid;
  for (const [pattern, kind, what] of RULES) {
    const match = pattern.exec(line);
    if (match === null) continue;
    return {
      kind,
      what: typeof what === 'string' ? what : what(match),
      pciAddress: addressOf(line),
      pid: kind === 'host' ? Number(match[1]) : null,
      xid: null,
    };
  }
  return null;
}

/** `NVRM: Xid (PCI:0000:01:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.` undefined: no Xid. */
function nvidia(line: string): KernelTrouble | null | undefined {
  const match =
    /\bNVRM: Xid \(PCI:([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2})(?:\.(\d))?\): (\d+)(?:, pid=['"]?(\d+))?/i.exec(
      line,
    );
  if (match === null) return undefined;
  const number = Number(match[3]);
  if (QUIET_XIDS.has(number)) return null;
  const pciAddress = `${(match[1] ?? '').toLowerCase().slice(-10)}.${match[2] ?? '0'}`;
  const pid = match[4] === undefined ? null : Number(match[4]);
  const base = { pciAddress, pid, xid: number };
  if (number === 79) return { ...base, kind: 'hardware', what: 'the card has fallen off the bus (Xid 79)' };
  const hung = HUNG_XIDS.get(number);
  if (hung !== undefined) return { ...base, kind: 'hung', what: `${hung} (Xid ${number})` };
  if (PROGRAM_XIDS.has(number)) {
    const name = /, name=([^,]+)/.exec(line)?.[1]?.trim();
    const who = name === undefined || name.startsWith('<') ? 'a program' : name;
    return { ...base, kind: 'program', what: `${who} made a fault on the card (Xid ${number})` };
  }
  return { ...base, kind: 'hardware', what: `the driver reports Xid ${number}` };
}

function addressOf(line: string): string | null {
  const match = /\b([0-9a-f]{4}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7])\b/i.exec(line);
  return match?.[1]?.toLowerCase() ?? addressOfGpuId(line);
}

/** `[GPU ID 0x00002b00]`: domain, bus and device in 16, 8 and 8 bits (gpuGenerate32BitId). */
function addressOfGpuId(line: string): string | null {
  const match = /\bGPU ID 0x([0-9a-f]{4})([0-9a-f]{2})([0-9a-f]{2})\b/i.exec(line);
  return match === null ? null : `${match[1]}:${match[2]}:${match[3]}.0`.toLowerCase();
}

/** One line of `journalctl -o json`: its message; null: none. A message that is no UTF-8 comes as bytes. */
export function journalMessage(line: string): string | null {
  try {
    const record: unknown = JSON.parse(line);
    const message: unknown =
      typeof record === 'object' && record !== null && 'MESSAGE' in record ? record.MESSAGE : null;
    if (typeof message === 'string') return message;
    return Array.isArray(message) ? Buffer.from(message).toString('latin1') : null;
  } catch {
    return null;
  }
}

/** One record of /dev/kmsg (Documentation/ABI/testing/dev-kmsg); null: it continues another. */
export function kmsgMessage(line: string): string | null {
  return /^\d+,\d+,\d+,[^;]*;(.*)$/.exec(line)?.[1] ?? null;
}
