import { statfsSync, statSync } from 'node:fs';
import { userInfo } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';

/**
 * Where the lanes lie. A lane that only some processes see is two lanes, so nothing that differs
 * between two processes of one user may move it: not HOME, XDG_*, a profile's folder or the working
 * directory. The home comes from the passwd entry of the effective uid (getpwuid_r(geteuid()), which
 * is what libuv's uv_os_get_passwd and so `os.userInfo` asks).
 */
export type GateRoot = {
  readonly path: string;
  /** override: VRAM_LANDLORD_GATE_DIR, which every inspection must say. */
  readonly from: 'override' | 'machine-wide' | 'passwd';
};

export interface RootInputs {
  readonly override: string | undefined;
  readonly cwd: string;
  readonly machineWide: string;
  readonly isThere: (folder: string) => boolean;
  /** null: the effective uid has no passwd entry, or one without a home. */
  readonly passwdHome: () => string | null;
}

export const MACHINE_WIDE_ROOT = '/var/lib/vram-landlord/gates';
export const GATE_DIR_VARIABLE = 'VRAM_LANDLORD_GATE_DIR';

/** null where the user has no home and nothing else is set. */
export function chooseRoot(inputs: RootInputs): GateRoot | null {
  if (inputs.override !== undefined && inputs.override !== '') {
    return { path: resolve(inputs.cwd, inputs.override), from: 'override' };
  }
  if (inputs.isThere(inputs.machineWide)) return { path: inputs.machineWide, from: 'machine-wide' };
  const home = inputs.passwdHome();
  if (home === null || !isAbsolute(home)) return null;
  return { path: join(home, '.local', 'state', 'vram-landlord', 'gates'), from: 'passwd' };
}

const homes = new Map<number, string | null>();

/** The home in the passwd entry of the effective uid, whatever HOME says; null where there is none. */
export function passwdHome(): string | null {
  const uid = process.geteuid?.() ?? -1;
  const known = homes.get(uid);
  if (known !== undefined) return known;
  let home: string | null;
  try {
    home = userInfo().homedir || null;
  } catch {
    home = null;
  }
  homes.set(uid, home);
  return home;
}

export function isFolder(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
  } catch {
    return false;
  }
}

/**
 * File systems where a flock is not one lock for all who see the file, or may hang with its server.
 * Numbers: statfs(2). FUSE is not among them: whether it is local can't be told from here, and its
 * flock is the kernel's own.
 */
const NETWORK_FILE_SYSTEMS: Readonly<Record<number, string>> = {
  26985: 'NFS',
  20859: 'SMB',
  4283649346: 'CIFS',
  4266872130: 'SMB2',
  12805120: 'Ceph',
  1397113167: 'AFS',
  1799439955: 'AFS',
  198183888: 'Lustre',
  16914839: '9p',
};

/** The name of the network file system a folder lies on; null: a local one, or it can't be told. */
export function networkFileSystem(folder: string): string | null {
  if (process.platform !== 'linux') return null;
  try {
    return NETWORK_FILE_SYSTEMS[statfsSync(folder).type >>> 0] ?? null;
  } catch {
    return null;
  }
}
