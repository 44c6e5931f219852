import type { Result } from '../../../shared/errors.ts';
import { isFolder, MACHINE_WIDE_ROOT, networkFileSystem, passwdHome } from './gate-root.ts';
import type { LocalNames } from './lane-key.ts';
import { readLocalNames } from './local-names.ts';
import { type FileLocker, fileLocker } from './locker.ts';
import { silent, type Teller } from './news.ts';
import { randomHex } from './random-hex.ts';

/** What the gate asks of the world outside the lock files, so that a test can say what there is. */
export interface GateWorld {
  env(): Readonly<Record<string, string | undefined>>;
  cwd(): string;
  /** The effective uid; undefined: this system has none. */
  user(): number | undefined;
  /** Of the effective uid; null: none. */
  passwdHome(): string | null;
  readonly machineWideRoot: string;
  isFolder(path: string): boolean;
  /** The name of the network file system a folder is on; null: local. */
  networkFileSystem(folder: string): string | null;
  names(): LocalNames;
  locker(): Result<FileLocker>;
  /** Who hears of deflected turns and of a gate that is out of order, beside the turn's own program. */
  readonly teller: Teller;
  /** Wall time, for the sidecar. */
  epochMs(): number;
  /** CLOCK_MONOTONIC, one clock for all processes of this boot. */
  monotonicMs(): number;
  /** Lower-case letters and digits, another each time. */
  chance(): string;
  /** 0 ≤ x < 1. */
  random(): number;
}

/** Of a process that stays one user's, and whose environment stays as it is: to ask for either is a call to the system. */
export function settledWorld(
  env: Readonly<Record<string, string | undefined>>,
): Pick<GateWorld, 'env' | 'user'> {
  const own = { ...env };
  const user = realWorld.user();
  return { env: () => own, user: () => user };
}

/** Drawn once: 4 µs of kernel randomness are too much for each turn. */
let drawn: string | null = null;
let count = 0;

function chance(): string {
  drawn ??= randomHex(5);
  count += 1;
  return `${drawn}${count.toString(36)}`;
}

export const realWorld: GateWorld = {
  env: () => process.env,
  cwd: () => process.cwd(),
  user: () => process.geteuid?.(),
  passwdHome,
  machineWideRoot: MACHINE_WIDE_ROOT,
  isFolder,
  networkFileSystem,
  names: readLocalNames,
  locker: fileLocker,
  teller: silent,
  epochMs: () => Date.now(),
  monotonicMs: () => {
    const [seconds, nanoseconds] = process.hrtime();
    return seconds * 1000 + nanoseconds / 1e6;
  },
  chance,
  random: Math.random,
};
