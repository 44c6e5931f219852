import { chooseRoot, GATE_DIR_VARIABLE, type GateRoot } from './gate-root.ts';
import type { GateWorld } from './gate-world.ts';
import { type LaneFiles, laneFiles } from './lane-files.ts';
import { laneKey } from './lane-key.ts';
import { lanesMeant } from './means.ts';
import type { GateReport, OpenReason } from './reports.ts';
import { type LockModes, PRIVATE_MODES, SHARED_MODES } from './take-slot.ts';

/** Which lanes a turn for a backend takes, before anything is opened. */
export type Plan =
  | {
      readonly kind: 'lanes';
      readonly root: GateRoot;
      /** In the order to take them in; at least one. */
      readonly lanes: readonly LaneFiles[];
      readonly modes: LockModes;
      /** What is wrong all the same, to be told once. */
      readonly flaw: GateReport | null;
    }
  | { readonly kind: 'skip'; readonly why: 'not_configured' | 'not_local' | 'no_lane' }
  | {
      readonly kind: 'open';
      readonly reason: OpenReason;
      readonly path: string | null;
      /** What is wrong and what to do, in a sentence. */
      readonly why: string;
      /** The same for a turn: it goes on. */
      readonly message: string;
    };

/**
 * How long a plan stands: which lanes it takes changes when an administrator makes the machine-wide
 * root or the runtime its settings, and a turn in flight then outlasts this anyway.
 */
const KEPT_MS = 1000;
const MOST_KEPT = 64;

interface Kept {
  readonly plan: Plan;
  readonly backendUrl: string | null | undefined;
  readonly model: string | null;
  readonly user: number | undefined;
  readonly override: string | undefined;
  readonly untilMs: number;
}

const GOES_ON = 'The turn goes on without its lane.';

export interface Planner {
  plan(backendUrl: string | null | undefined, model: string | null): Plan;
  /** null: this user has no home and no other root is set. */
  root(): GateRoot | null;
}

export function createPlanner(world: GateWorld): Planner {
  /** A root's file system does not change under it while a process lives. */
  const networks = new Map<string, string | null>();
  const kept = new Map<string, Kept>();
  let last: Kept | null = null;

  const root = (): GateRoot | null => {
    const override = world.env()[GATE_DIR_VARIABLE];
    return chooseRoot({
      override,
      cwd: override === undefined || override.startsWith('/') ? '/' : world.cwd(),
      machineWide: world.machineWideRoot,
      isThere: (path) => world.isFolder(path),
      passwdHome: () => world.passwdHome(),
    });
  };

  const networkOf = (path: string): string | null => {
    const known = networks.get(path);
    if (known !== undefined) return known;
    const found = world.networkFileSystem(nearestFolder(path, world));
    networks.set(path, found);
    return found;
  };

  const makePlan = (backendUrl: string | null | undefined, model: string | null): Plan => {
    if (backendUrl === null || backendUrl === undefined || backendUrl.trim() === '') {
      return { kind: 'skip', why: 'not_configured' };
    }
    const key = laneKey(backendUrl, () => world.names());
    if (key.kind === 'remote') return { kind: 'skip', why: 'not_local' };
    if (key.kind === 'invalid') {
      return open('bad_url', null, key.why);
    }
    const where = root();
    if (where === null) {
      const why =
        `User ${process.geteuid?.() ?? ''} has no home in the passwd database, so there is no common place for ` +
        `lanes; set ${GATE_DIR_VARIABLE} or run \`landlord gate --machine-wide\` once as root.`;
      return open('no_home', null, why);
    }
    const network = networkOf(where.path);
    if (network !== null) {
      const why =
        `${where.path} is on ${network}, where a file lock is not one lock for this machine; ` +
        `set ${GATE_DIR_VARIABLE} to a local folder or run \`landlord gate --machine-wide\` once as root.`;
      return open('root_on_network', where.path, why);
    }
    const asked = laneFiles(where.path, key.name);
    const { lanes, garbage } = lanesMeant(asked, model);
    if (lanes.length === 0) return { kind: 'skip', why: 'no_lane' };
    return {
      kind: 'lanes',
      root: where,
      lanes,
      modes: where.from === 'machine-wide' ? SHARED_MODES : PRIVATE_MODES,
      flaw:
        garbage === null
          ? null
          : { reason: 'means_garbage', lane: key.name, path: asked.means, message: garbage, errno: null },
    };
  };

  const plan = (backendUrl: string | null | undefined, model: string | null): Plan => {
    const user = world.user();
    const override = world.env()[GATE_DIR_VARIABLE];
    const nowMs = world.monotonicMs();
    const stands = (one: Kept): boolean =>
      nowMs < one.untilMs && one.user === user && one.override === override;
    // Most turns are for what the one before was for.
    if (last !== null && last.backendUrl === backendUrl && last.model === model && stands(last))
      return last.plan;
    const name = `${model} ${backendUrl}`;
    const known = kept.get(name);
    if (known !== undefined && stands(known)) {
      last = known;
      return known.plan;
    }
    const made = makePlan(backendUrl, model);
    if (kept.size >= MOST_KEPT) kept.clear();
    last = null;
    if (made.kind === 'lanes') {
      last = { plan: made, backendUrl, model, user, override, untilMs: nowMs + KEPT_MS };
      kept.set(name, last);
    } else kept.delete(name);
    return made;
  };

  return { plan, root };
}

function open(reason: OpenReason, path: string | null, why: string): Plan {
  return { kind: 'open', reason, path, why, message: `${why} ${GOES_ON}` };
}

/** The folder itself, or the nearest above it that is there. */
function nearestFolder(path: string, world: GateWorld): string {
  let folder = path;
  while (folder !== '/' && folder !== '' && !world.isFolder(folder)) {
    folder = folder.slice(0, Math.max(0, folder.lastIndexOf('/'))) || '/';
  }
  return folder;
}
