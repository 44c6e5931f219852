import type { LandlordState } from '../../../shared/state.ts';
import type { RuntimeApi } from '../runtime-api.ts';
import { type SseStream, sseFrame } from './sse.ts';

/**
 * Sends the window its snapshots: the first at once, then at most one per `intervalMs`, always the
 * newest there is. A slow reader skips snapshots, it never gets old ones late.
 */
export interface StateFeedOptions {
  readonly api: Pick<RuntimeApi, 'state' | 'onState'>;
  readonly stream: SseStream;
  readonly intervalMs: number;
  readonly monotonicMs: () => number;
}

export function startStateFeed(options: StateFeedOptions): void {
  const { api, stream, intervalMs, monotonicMs } = options;
  let waiting: LandlordState | null = api.state();
  let sentRevision = -1;
  let sentAtMs = Number.NEGATIVE_INFINITY;
  let timer: NodeJS.Timeout | undefined;

  const flush = (): void => {
    if (waiting === null || timer !== undefined) return;
    const inMs = sentAtMs + intervalMs - monotonicMs();
    if (inMs > 0) {
      timer = setTimeout(() => {
        timer = undefined;
        flush();
      }, inMs);
      timer.unref();
      return;
    }
    if (!stream.send(stateFrame(waiting))) return;
    sentRevision = waiting.revision;
    sentAtMs = monotonicMs();
    waiting = null;
  };
  const undo = api.onState((state) => {
    if (state.revision <= Math.max(sentRevision, waiting?.revision ?? -1)) return;
    waiting = state;
    flush();
  });
  stream.onOpen(flush);
  stream.onClose(() => {
    clearTimeout(timer);
    undo();
  });
  flush();
}

/** One serialization for all windows that get the same snapshot. */
const frames = new WeakMap<LandlordState, string>();

function stateFrame(state: LandlordState): string {
  const known = frames.get(state);
  if (known !== undefined) return known;
  const frame = sseFrame({ event: 'state', data: JSON.stringify(state) });
  frames.set(state, frame);
  return frame;
}
