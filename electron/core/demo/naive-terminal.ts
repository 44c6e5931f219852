import { ok, type Result } from '../../../shared/errors.ts';
import { ChildEngineHost } from '../engine/child-host.ts';
import type { EngineHost, MemoryUse } from '../engine/engine-host.ts';
import type { SimulatedCard } from './simulated-card.ts';

export interface NaiveTerminal extends AsyncDisposable {
  readonly pid: number;
  readonly weightsBytes: number;
  /** Of the context it wants up front. */
  readonly contextBytes: number;
  /** What the card was short of; null: it has its context. */
  readonly missingBytes: number | null;
}

/**
 * One terminal of the demo: a process of its own that loads a model and reserves its whole context up
 * front, as llama-completion does. It asks nobody; the card gives the memory, or does not, and then the
 * process ends.
 */
export async function openTerminal(options: {
  readonly title: string;
  readonly path: string;
  readonly contextTokens: number;
  readonly card: SimulatedCard;
  readonly signal: AbortSignal;
}): Promise<Result<NaiveTerminal>> {
  const { title, card } = options;
  const host = new ChildEngineHost({ gpu: 'cpu' });
  const close = async (): Promise<void> => {
    await host.stop();
    card.set({ name: title, bytes: 0, type: 'C' });
  };
  const opened = await open(host, options);
  if (!opened.ok || opened.value.missingBytes !== null) await close();
  return opened.ok ? ok({ ...opened.value, [Symbol.asyncDispose]: close }) : opened;
}

async function open(
  host: EngineHost,
  { title, path, contextTokens, card, signal }: Parameters<typeof openTerminal>[0],
): Promise<Result<Omit<NaiveTerminal, typeof Symbol.asyncDispose>>> {
  const started = await host.start();
  if (!started.ok) return started;
  const { pid } = started.value;
  const model = await host.loadModel({ path, gpuLayers: null }, signal);
  if (!model.ok) return model;
  const { modelId, fileBytes } = model.value;
  const wanted = await host.estimateContext({ modelId, contextTokens });
  if (!wanted.ok) return wanted;
  const weightsBytes = bytesOf(model.value) ?? fileBytes;
  const contextBytes = bytesOf(wanted.value) ?? 0;
  const facts = { pid, weightsBytes, contextBytes };
  const missing = (bytes: number): number | null => {
    const short = bytes - card.reading().freeBytes;
    return short > 0 ? short : null;
  };
  const short = missing(weightsBytes) ?? missing(weightsBytes + contextBytes);
  if (short !== null) return ok({ ...facts, missingBytes: short });
  const context = await host.createContext({ modelId, contextTokens });
  if (!context.ok) return context;
  card.set({ name: title, bytes: weightsBytes + contextBytes, type: 'C', pid });
  return ok({ ...facts, missingBytes: null });
}

function bytesOf({ deviceBytes, hostBytes }: MemoryUse): number | null {
  return deviceBytes === null && hostBytes === null ? null : (deviceBytes ?? 0) + (hostBytes ?? 0);
}
