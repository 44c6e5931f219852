/**
 * What is known of a process, and what proves that it is still the one we mean (rule 10).
 * Facts come from /proc: see proc(5) for the files and fields.
 */

export interface ProcessFacts {
  readonly pid: number;
  /** Field 22 of /proc/<pid>/stat. */
  readonly startTimeTicks: number;
  readonly parentPid: number;
  readonly parentStartTimeTicks: number | null;
  readonly uid: number | null;
  /** argv; null where it can't be read. */
  readonly command: readonly string[] | null;
  /** TCP ports it listens on; null where its descriptors can't be read (another user, hidepid, a container). */
  readonly listeningPorts: readonly number[] | null;
  /** `LLAMA_SERVER_ROUTER_PORT` of its environment, where readable and set. */
  readonly routerPort: number | null;
  /** What of its environment changes what its model takes, as llama-server reads it; left out: none, or not readable. */
  readonly variables?: readonly (readonly [name: string, value: string])[];
  /** It runs in no service, and what started it is gone: the system's or the session's first process has taken it in. Left out: not looked at. */
  readonly isAlone?: boolean;
  /** utime + stime in milliseconds. */
  readonly cpuMs: number;
  /** proc(5) state letter: R, S, D (uninterruptible), Z (zombie), … */
  readonly state: string;
}

/** Recorded when a model's process is first proven; all of it must match again before a signal. */
export interface ProcessIdentity {
  readonly pid: number;
  readonly startTimeTicks: number;
  readonly command: readonly string[];
  /** Of `ProcessFacts`: no mark of identity. */
  readonly variables?: readonly (readonly [name: string, value: string])[];
  readonly port: number;
  readonly parentPid: number;
  readonly parentStartTimeTicks: number | null;
}

/** An inference server as the one that started it describes it, or as it stands by itself. */
export interface ServerQuery {
  /** 0: not told; then `modelFile` is what it is known by, and its command line says the port. */
  readonly port: number;
  /** `--alias M` on the child's command line; null: it carries none. */
  readonly alias: string | null;
  /** The port of the server that started it; null for a plain server. */
  readonly routerPort: number | null;
  /** What that server is called in sentences; left out: the router. */
  readonly ownerName?: string;
  /** The end of a file's path on its command line, such as a blob's name with its digest. */
  readonly modelFile?: string;
  /** The pid its owner tells for it: the proof must come to the same. */
  readonly pid?: number;
}

export type Proof =
  | { readonly proven: true; readonly identity: ProcessIdentity; readonly facts: ProcessFacts }
  /** `why` is a sentence: several processes match, descriptors unreadable, nothing listens there. */
  | { readonly proven: false; readonly why: string };
