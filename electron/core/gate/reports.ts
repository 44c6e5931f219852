/**
 * Why a turn went through without its lane, or with less than usual. The gate guards speed, not
 * safety: whatever goes wrong in it, the turn goes on (rule 17) and this is told once.
 */
export type OpenReason =
  | 'bad_url'
  | 'no_home'
  | 'root_not_writable'
  | 'root_not_a_folder'
  | 'root_on_network'
  | 'lock_not_a_file'
  | 'disk_full'
  | 'no_locker'
  | 'lock_failed'
  | 'lock_replaced'
  | 'internal';

/** The turn holds its lane all the same. */
export type FlawReason =
  | 'sidecar_not_written'
  | 'sidecar_garbage'
  | 'width_garbage'
  | 'means_garbage'
  | 'queue_failed';

export interface GateReport {
  readonly reason: OpenReason | FlawReason;
  /** `127.0.0.1_8080`; null where it is not known. */
  readonly lane: string | null;
  readonly path: string | null;
  /** A whole sentence: what is wrong and what to do. */
  readonly message: string;
  /** `ENOSPC` and such. */
  readonly errno: string | null;
}

export type OnReport = (report: GateReport) => void;

/** Passes on the first report of a kind about a lane, and no other: a full disk is one event, not one a turn. */
export function oncePerReason(): (report: GateReport, onReport: OnReport) => void {
  const told = new Set<string>();
  return (report, onReport) => {
    const key = `${report.reason} ${report.lane} ${report.path}`;
    if (told.has(key)) return;
    told.add(key);
    try {
      onReport(report);
    } catch {
      // A listener that fails must not stop the turn.
    }
  };
}

/** For a program that listens to none: one warning of the process. */
export const warnOnStderr: OnReport = (report) => {
  process.emitWarning(report.message, { type: 'LandlordGate', code: report.reason });
};
