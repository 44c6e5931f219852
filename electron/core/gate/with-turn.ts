import { fail, ok, type Result } from '../../../shared/errors.ts';
import { acquireTurn, type WaitOptions } from './acquire.ts';
import type { Gate } from './gate.ts';
import type { GrantedTurn } from './turn.ts';

/**
 * Runs one turn in its backend's lane and frees the lane when `fn` is over, however it ends. What
 * `fn` throws comes through. A turn for the same lane inside `fn` passes.
 *
 * Errors: `local_backend_busy` (with `heldForMs`, `waitedMs`), `cancelled`; then `fn` was not run.
 */
export async function withTurn<T>(
  gate: Gate,
  backendUrl: string | null | undefined,
  options: WaitOptions,
  fn: (turn: GrantedTurn) => T | Promise<T>,
): Promise<Result<T>> {
  using turn = await acquireTurn(gate, backendUrl, options);
  if (turn.kind === 'busy') {
    return fail(turn.code, turn.message, { heldForMs: turn.heldForMs, waitedMs: turn.waitedMs });
  }
  if (turn.kind === 'cancelled') {
    return fail('cancelled', 'The turn was cancelled while it waited for its lane.', {
      waitedMs: turn.waitedMs,
    });
  }
  const granted: GrantedTurn = turn;
  return ok(await gate.within(granted, () => fn(granted)));
}
