import type { Result } from '../../../shared/errors.ts';

/**
 * A ledger line. Predicted bytes are booked before a load; measured bytes take their place after;
 * released on unload, failure or death.
 *
 *   reserve ─► loading (predicted, seen so far) ─► committed (measured, or predicted while unknown) ─► released
 */
export type Booking = {
  readonly id: string;
  readonly kind: 'model' | 'agent' | 'reserved';
  /** Display name: `backend/model`, an agent's name, a job's name. */
  readonly name: string;
  readonly deviceId: string;
  /** null: nobody could say yet. Booked as what was seen so far. */
  readonly predictedBytes: number | null;
  /** Bytes attributed to it by measurement so far; null: not measurable. */
  readonly measuredBytes: number | null;
  readonly state: 'loading' | 'committed';
  readonly sinceMs: number;
  /** Weights shared with other lines of the same key are booked once (rule 1). */
  readonly shared: { readonly key: string; readonly bytes: number } | null;
};

export interface ReserveRequest {
  readonly id: string;
  readonly kind: Booking['kind'];
  readonly name: string;
  readonly deviceId: string;
  /** Private bytes, over and above `shared`. */
  readonly predictedBytes: number | null;
  readonly shared?: { readonly key: string; readonly bytes: number };
  /** May go down to the hard floor: it is the only big model (design §1). */
  readonly soleBig?: boolean;
  /** Booked as seen: the backend loads it whether we like it or not, so nothing is refused. */
  readonly forced?: boolean;
  /** Bytes that planned evictions will give back first; credited before asking. */
  readonly creditBytes?: number;
  readonly nowMs: number;
}

/** Rule 4: a denial says why in numbers. `unknown` figures are null. */
export interface Denial {
  /** `BAD_INPUT`: a figure that is no byte count; `ALREADY_BOOKED`: the id holds a line, which stays as it is. */
  readonly code: 'CAP' | 'FLOOR' | 'UNKNOWN_FREE' | 'UNKNOWN_DEVICE' | 'BAD_INPUT' | 'ALREADY_BOOKED';
  readonly message: string;
  readonly capBytes: number | null;
  readonly bookedBytes: number;
  readonly requestedBytes: number;
  readonly freeBytes: number | null;
  readonly floorBytes: number | null;
  readonly outstandingBytes: number;
  /** How much has to go for it to fit. */
  readonly shortBytes: number | null;
}

export interface DeviceLimits {
  readonly totalBytes: number | null;
  readonly capBytes: number | null;
  readonly floorBytes: number | null;
  readonly hardFloorBytes: number | null;
}

export interface DeviceBook extends DeviceLimits {
  readonly deviceId: string;
  /** Σ of committed and reserved lines, shared weights once. */
  readonly bookedBytes: number;
  /** Σ max(0, predicted − seen so far) over loads in flight. */
  readonly outstandingBytes: number;
  /** What of it belongs to loads that are said to be over, whose memory has not been seen at rest. */
  readonly restingBytes: number;
  /** The driver's figure, as of the last good sample. */
  readonly driverFreeBytes: number | null;
  /** The smaller of what the driver says and total minus the book; on unified memory also bounded by what the system has available. */
  readonly freeBytes: number | null;
  readonly sampledAtMs: number | null;
}

export type ReserveResult = Result<Booking, Denial>;
