import type { LandlordError } from '../../../shared/errors.ts';
import type { ProcessIdentity } from '../process/identity.ts';

/**
 * What the runtime and its reaper child say to each other.
 *
 *   arm ─► armed ─► kill ─► signalled
 *     └──► refused     └──► refused
 */
export type ToReaper =
  | { readonly type: 'arm'; readonly identity: ProcessIdentity }
  | { readonly type: 'kill' };

export type FromReaper =
  | { readonly type: 'armed' }
  | { readonly type: 'refused'; readonly error: LandlordError }
  /** `goneAfterMs`: from the signal until the kernel had taken the process away; null: still there after the limit. */
  | { readonly type: 'signalled'; readonly goneAfterMs: number | null };
