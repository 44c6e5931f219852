import type { Agent } from 'undici';
import { ask, chat } from './gateway-client.ts';
import type { Way } from './gateway-rig.ts';
import { quantile } from './report.ts';

export interface BatchPlan {
  /** Interactive requests measured, idle and beside the indexer. */
  readonly samples: number;
  /** Batch requests the indexer keeps in flight: the field's own mistake. */
  readonly depth: number;
  readonly batchTokens: number;
}

export interface BatchFigures {
  readonly idleMs: { readonly p50: number; readonly p90: number };
  readonly besideMs: { readonly p50: number; readonly p90: number };
  /** Idle and a fifth, and what was left of the one batch request in flight that had longest to go. */
  readonly boundMs: { readonly p50: number; readonly p90: number };
  /** Of the samples, how many were within their own bound. */
  readonly withinShare: number;
  readonly batchDone: number;
}

/** A person reads between two questions; batch work goes on meanwhile. */
const READS_MS = 350;

/** Time to first token of an interactive request, with an indexer at the same model and without. */
export async function batchFigures(client: Agent, way: Way, plan: BatchPlan): Promise<BatchFigures> {
  const turn = async (): Promise<{ readonly sentAtMs: number; readonly firstByteMs: number }> => {
    await new Promise((resolve) => setTimeout(resolve, READS_MS));
    const sentAtMs = performance.now();
    const { firstByteMs } = await ask(client, way, chat(8, true));
    return { sentAtMs, firstByteMs };
  };
  const idle: number[] = [];
  for (let index = 0; index < plan.samples; index += 1) idle.push((await turn()).firstByteMs);

  const batch: { readonly firstAtMs: number; readonly endAtMs: number }[] = [];
  const stopping = new AbortController();
  const indexer = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      const sentAtMs = performance.now();
      const { firstByteMs, totalMs } = await ask(client, way, chat(plan.batchTokens, true), {
        'x-landlord-session': 'indexer',
        'x-landlord-class': 'batch',
      });
      // Until its first byte it has waited; it is in flight from there on.
      batch.push({ firstAtMs: sentAtMs + firstByteMs, endAtMs: sentAtMs + totalMs });
    }
  };
  const workers = Array.from({ length: plan.depth }, indexer);
  const beside: Awaited<ReturnType<typeof turn>>[] = [];
  for (let index = 0; index < plan.samples; index += 1) beside.push(await turn());
  stopping.abort();
  await Promise.all(workers);

  const allowedMs = 1.2 * quantile(idle, 0.5);
  const bounds = beside.map(({ sentAtMs }) => {
    const left = batch
      .filter(({ firstAtMs, endAtMs }) => firstAtMs <= sentAtMs && endAtMs > sentAtMs)
      .map(({ endAtMs }) => endAtMs - sentAtMs);
    return allowedMs + Math.max(0, ...left);
  });
  const within = beside.filter(({ firstByteMs }, index) => firstByteMs <= (bounds[index] ?? 0)).length;
  const both = (values: readonly number[]) => ({ p50: quantile(values, 0.5), p90: quantile(values, 0.9) });
  return {
    idleMs: both(idle),
    besideMs: both(beside.map(({ firstByteMs }) => firstByteMs)),
    boundMs: both(bounds),
    withinShare: within / beside.length,
    batchDone: batch.length,
  };
}

export function batchNote(plan: BatchPlan, figures: BatchFigures): string {
  const text = ({ p50, p90 }: { readonly p50: number; readonly p90: number }): string =>
    `${p50.toFixed(1)} ms (p50), ${p90.toFixed(1)} (p90)`;
  return (
    `time to first token: idle ${text(figures.idleMs)}; beside an indexer with ${plan.depth} requests of ${plan.batchTokens} tokens ` +
    `${text(figures.besideMs)}, against idle + 20 % + what is left of one batch request in flight ${text(figures.boundMs)}: ` +
    `${(100 * figures.withinShare).toFixed(0)} % within their bound; ${figures.batchDone} batch requests done meanwhile`
  );
}
