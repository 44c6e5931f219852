import type { NewEvent } from '../../../shared/events.ts';
import type { BackendSetting } from '../../../shared/settings.ts';
import type { Gate } from '../gate/gate.ts';
import { laneFiles } from '../gate/lane-files.ts';
import { LOCAL_HOST } from '../gate/lane-key.ts';
import { setUpLane } from '../gate/lane-setup.ts';
import { type LaneMeaning, readMeaning } from '../gate/means.ts';
import { isGone, ownPid, seesAllProcesses, startTimeOf } from '../gate/process-start.ts';
import { lanesBehindGateway } from '../gateway/gateway-lanes.ts';
import type { ModelView } from './model-view.ts';

/**
 * Keeps written, while we listen, which lanes our gateway's port stands for. The file names us, so that
 * one a killed runtime leaves behind counts for nothing; a port we do not listen at is never touched.
 */
export class GatewayLane {
  readonly #gate: Pick<Gate, 'root'>;
  readonly #tell: (event: NewEvent) => void;
  #port: number | null = null;
  #seen: { readonly backends: unknown; readonly views: unknown } | null = null;
  #written: { readonly root: string; readonly text: string } | null = null;
  #trouble: string | null = null;
  /** No lane stands at this port, and nothing that was left behind. */
  #clearedPort: number | null = null;

  readonly #isClosed: () => boolean;

  /** `isClosed`: lanes can't be set up here, which is told already. */
  constructor(gate: Pick<Gate, 'root'>, tell: (event: NewEvent) => void, isClosed: () => boolean) {
    this.#gate = gate;
    this.#tell = tell;
    this.#isClosed = isClosed;
  }

  listens(port: number): void {
    this.#port = port;
    this.#clearedPort = null;
    this.#seen = null;
  }

  /** Any number of times: the same two lists change nothing. */
  follow(backends: readonly BackendSetting[], views: readonly ModelView[]): void {
    const port = this.#port;
    if (port === null || (this.#seen?.backends === backends && this.#seen.views === views)) return;
    if (this.#isClosed()) return;
    this.#seen = { backends, views };
    const meaning = lanesBehindGateway(backends, views, port);
    if (meaning === null) {
      // While we listen at it nobody else writes for this port: once is enough.
      if (this.#clearedPort !== port && this.#remove(port)) this.#clearedPort = port;
      return;
    }
    this.#clearedPort = null;
    const root = this.#gate.root()?.path ?? null;
    const text = JSON.stringify(meaning);
    if (root === null || (this.#written?.root === root && this.#written.text === text)) return;
    if (this.#written !== null && this.#written.root !== root) this.#remove(port);
    if (this.#write(root, port, { ...meaning, ...writer() })) this.#written = { root, text };
  }

  /** Before we stop listening. */
  stop(): void {
    if (this.#port !== null) this.#remove(this.#port);
    this.#port = null;
  }

  #write(root: string, port: number, means: LaneMeaning | null): boolean {
    const setup = { name: `${LOCAL_HOST}_${port}`, width: null, means };
    const done = setUpLane(root, setup, this.#gate.root()?.from === 'machine-wide');
    const trouble = done.ok ? null : done.error.message;
    if (trouble !== null && trouble !== this.#trouble) {
      this.#tell({ kind: 'fail_open', reason: trouble, numbers: {} });
    }
    this.#trouble = trouble;
    return done.ok;
  }

  /** Ours, and one left behind at our port. False: it could not be, or not be looked for. */
  #remove(port: number): boolean {
    const wrote = this.#written !== null;
    const root = this.#written?.root ?? this.#gate.root()?.path;
    this.#written = null;
    if (root === undefined) return false;
    const found = readMeaning(laneFiles(root, `${LOCAL_HOST}_${port}`).means)?.writer;
    const stands = wrote || (found !== undefined && isGone(found));
    return !stands || this.#write(root, port, null);
  }
}

/** In a pid namespace our number says nothing to those outside: then the file stands until we end. */
function writer(): Pick<LaneMeaning, 'writer'> {
  return seesAllProcesses() ? { writer: { pid: ownPid(), startTime: startTimeOf(ownPid()) } } : {};
}
