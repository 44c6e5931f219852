/** What a keeper is told. Its channel's end means the same as `stop`. */
export type ToKeeper =
  | {
      readonly type: 'run';
      readonly command: readonly string[];
      readonly cwd: string;
      readonly logFile: string;
      /** From asking the server to stop to ending all that it started. */
      readonly graceMs: number;
    }
  | { readonly type: 'stop' };

export type FromKeeper =
  | { readonly type: 'started'; readonly pid: number }
  /** `gone`: nothing of it is left. */
  | { readonly type: 'over'; readonly exitCode: number | null; readonly signal: string | null }
  /** It could not be started; `reason` is a clause. */
  | { readonly type: 'refused'; readonly reason: string };
