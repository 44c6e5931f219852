import { parseStat, parseStatmResident } from '../process/procfs-text.ts';
import { attributeClients, type ClientSighting } from './drm-clients.ts';
import { parseFdinfo } from './fdinfo.ts';
import { readKfdNodes, readKfdUse } from './kfd.ts';
import { mergeProcesses } from './process-memory.ts';
import { MIB, parsePciAddress } from './quantity.ts';
import type { CardFacts } from './reader.ts';
import type { ProcessMemory } from './sample.ts';
import type { SysTree } from './sysfs.ts';

export interface Scan {
  readonly rows: readonly ProcessMemory[];
  /** PCI addresses of cards that some process really uses. */
  readonly openCards: ReadonlySet<string>;
}

/** A process that has no GPU file open is looked at again this often; one that appeared since we run, at every scan. */
const RECHECK_YOUNG_MS = 12_000;
const RECHECK_OLD_MS = 30_000;
/** So many places in a pause. */
const SHARES = 64;
const YOUNG_MS = 30_000;
const OLD_MS = 300_000;
/** A compositor keeps a few MiB on every card it knows; that is no use of the card. */
const IN_USE_BYTES = 16 * MIB;
/** They open each card there is, and let it sleep all the same. */
const COMPOSITORS =
  /^(gnome-shell|kwin_|Xorg|Xwayland|X|sway|Hyprland|niri|cosmic-comp|weston|mutter|plasmashell|wayfire|labwc)/;

interface Known {
  readonly firstSeenMs: number;
  readonly pauseMs: number;
  readonly checkAgainAtMs: number;
  /** Descriptors on GPU files, by number, when it was last looked at. */
  readonly files: readonly { readonly fd: string; readonly target: string }[];
}

export interface ProcessScanner {
  scan(nowMs: number, cards: readonly CardFacts[]): Scan;
  /** Resident bytes of these processes, for memory that is the system's. */
  resident(pids: readonly number[], deviceId: string): readonly ProcessMemory[];
}

/**
 * Looks through /proc for GPU clients, cheaply: most processes never open a GPU file, and are
 * remembered as such for a while. `ownPids` (this program's) are no use of a card.
 */
export function processScanner(
  tree: SysTree,
  pageBytes: number,
  ownPids: () => ReadonlySet<number>,
): ProcessScanner {
  const known = new Map<number, Known>();
  let scans = 0;

  const statOf = (pid: number): ReturnType<typeof parseStat> =>
    parseStat(tree.readText(`/proc/${pid}/stat`) ?? '');

  const gpuFiles = (pid: number): Known['files'] => {
    const files: { fd: string; target: string }[] = [];
    for (const fd of tree.list(`/proc/${pid}/fd`)) {
      const target = tree.link(`/proc/${pid}/fd/${fd}`);
      if (target?.startsWith('/dev/') && /^\/dev\/(dri\/|nvidia|kfd)/.test(target))
        files.push({ fd, target });
    }
    return files;
  };

  const filesOf = (pid: number, nowMs: number): Known['files'] => {
    const before = known.get(pid);
    if (before !== undefined && nowMs < before.checkAgainAtMs) return [];
    const files = gpuFiles(pid);
    // What ran before us has had its time to open a card.
    const firstSeenMs = before?.firstSeenMs ?? (scans === 1 ? nowMs - YOUNG_MS : nowMs);
    const ageMs = nowMs - firstSeenMs;
    const pauseMs = ageMs < YOUNG_MS ? 0 : ageMs < OLD_MS ? RECHECK_YOUNG_MS : RECHECK_OLD_MS;
    // Whoever gets a new pause begins somewhere within it: else all that was there at the first scan, and on
    // a busy machine is thousands, would come up in the same scan again and again.
    const share = ((pid * 7) % SHARES) / SHARES;
    const waitMs = before?.pauseMs === pauseMs ? pauseMs : pauseMs * share;
    known.set(pid, { firstSeenMs, pauseMs, files, checkAgainAtMs: files.length > 0 ? 0 : nowMs + waitMs });
    return files;
  };

  const scan = (nowMs: number, cards: readonly CardFacts[]): Scan => {
    scans += 1;
    const sightings: ClientSighting[] = [];
    const openCards = new Set<string>();
    const own = ownPids();
    const nvidiaByMinor = readNvidiaMinors(tree, cards);
    const alive = new Set<number>();
    for (const entry of tree.list('/proc')) {
      if (!/^\d+$/.test(entry)) continue;
      const pid = Number(entry);
      alive.add(pid);
      if (own.has(pid)) continue;
      const files = filesOf(pid, nowMs);
      if (files.length === 0) continue;
      const stat = statOf(pid);
      const name = stat?.comm ?? `process ${pid}`;
      const startTimeTicks = stat?.startTimeTicks ?? null;
      for (const { fd, target } of files) {
        if (target.startsWith('/dev/dri/')) {
          const client = parseFdinfo(tree.readText(`/proc/${pid}/fdinfo/${fd}`) ?? '');
          if (client === null) continue;
          sightings.push({ pid, startTimeTicks, name, client });
          const inUse = Math.max(client.vramBytes ?? 0, client.gttBytes ?? 0) >= IN_USE_BYTES;
          if (inUse && client.pciAddress !== null) openCards.add(client.pciAddress);
        } else if (!COMPOSITORS.test(name)) {
          const pciAddress = nvidiaByMinor.get(target);
          if (pciAddress !== undefined) openCards.add(pciAddress);
        }
      }
    }
    for (const pid of known.keys()) if (!alive.has(pid)) known.delete(pid);
    const rows = [...drmRows(sightings, cards), ...kfdRows(tree, cards, statOf)];
    for (const row of rows) {
      const card = row.source === 'kfd' ? cards.find((entry) => entry.id === row.deviceId) : undefined;
      if (card !== undefined) openCards.add(card.pciAddress);
    }
    return { rows: mergeProcesses(rows), openCards };
  };

  const resident = (pids: readonly number[], deviceId: string): readonly ProcessMemory[] =>
    pids.flatMap((pid): readonly ProcessMemory[] => {
      const stat = statOf(pid);
      if (stat === null) return [];
      const bytes = parseStatmResident(tree.readText(`/proc/${pid}/statm`) ?? '', pageBytes);
      return [
        {
          pid,
          startTimeTicks: stat.startTimeTicks,
          name: stat.comm,
          deviceId,
          bytes,
          gttBytes: null,
          type: null,
          source: 'statm',
        },
      ];
    });

  return { scan, resident };
}

/** On unified memory the GTT part counts as well: it is the same pool. */
function drmRows(
  sightings: readonly ClientSighting[],
  cards: readonly CardFacts[],
): readonly ProcessMemory[] {
  return attributeClients(sightings).flatMap((row): readonly ProcessMemory[] => {
    const card = cards.find((entry) => entry.pciAddress === row.pciAddress);
    // NVIDIA's DRM nodes answer without figures: NVML has them.
    if (card === undefined || card.kind === 'nvidia') return [];
    const both = row.vramBytes === null ? row.gttBytes : row.vramBytes + (row.gttBytes ?? 0);
    return [
      {
        pid: row.pid,
        startTimeTicks: row.startTimeTicks,
        name: row.name,
        deviceId: card.id,
        bytes: card.memory === 'unified' ? both : row.vramBytes,
        gttBytes: row.gttBytes,
        type: null,
        source: 'drm-fdinfo',
      },
    ];
  });
}

function kfdRows(
  tree: SysTree,
  cards: readonly CardFacts[],
  statOf: (pid: number) => ReturnType<typeof parseStat>,
): readonly ProcessMemory[] {
  if (!cards.some((card) => card.kind === 'amdgpu')) return [];
  const uses = readKfdUse(tree).filter((use) => use.bytes > 0);
  if (uses.length === 0) return [];
  const nodes = new Map(readKfdNodes(tree).map((node) => [node.gpuId, node.pciAddress]));
  return uses.flatMap((use): readonly ProcessMemory[] => {
    const card = cards.find((entry) => entry.pciAddress === nodes.get(use.gpuId));
    if (card === undefined) return [];
    const stat = statOf(use.pid);
    return [
      {
        pid: use.pid,
        startTimeTicks: stat?.startTimeTicks ?? null,
        name: stat?.comm ?? `process ${use.pid}`,
        deviceId: card.id,
        bytes: use.bytes,
        gttBytes: null,
        type: null,
        source: 'kfd',
      },
    ];
  });
}

/** `/dev/nvidia0` → PCI address, from the driver's own list in /proc. */
function readNvidiaMinors(tree: SysTree, cards: readonly CardFacts[]): ReadonlyMap<string, string> {
  const minors = new Map<string, string>();
  if (!cards.some((card) => card.kind === 'nvidia' && card.maySuspend)) return minors;
  for (const entry of tree.list('/proc/driver/nvidia/gpus')) {
    const pciAddress = parsePciAddress(entry);
    const information = tree.readText(`/proc/driver/nvidia/gpus/${entry}/information`) ?? '';
    const minor = /^Device Minor:\s*(\d+)/m.exec(information)?.[1];
    if (pciAddress !== null && minor !== undefined) minors.set(`/dev/nvidia${minor}`, pciAddress);
  }
  return minors;
}
