import { fail, messageOf, ok, type Result } from '../../../../shared/errors.ts';
import type { EngineFacts } from '../engine-host.ts';
import type { EngineHandlers, EngineOptions } from '../messages.ts';
import { chat } from './chat.ts';
import { complete } from './completion.ts';
import { ContextStore } from './contexts.ts';
import { decode } from './decode.ts';
import { EmbeddingContexts } from './embeddings.ts';
import { LlamaLog } from './llama-log.ts';
import { ModelStore } from './models.ts';
import { readAhead } from './read-ahead.ts';
import { restoreState, saveState } from './states.ts';
import { Steps } from './steps.ts';

/** node-llama-cpp, opened once in this process, and the calls it answers. */
export interface Engine {
  readonly facts: EngineFacts;
  readonly handlers: EngineHandlers;
  /** Of native work that runs now. */
  longestStepMs(): number;
  close(): Promise<void>;
}

/** Errors: `engine_unavailable`, with what is missing. */
export async function openEngine(options: EngineOptions): Promise<Result<Engine>> {
  let library: typeof import('node-llama-cpp');
  try {
    library = await import('node-llama-cpp');
  } catch (thrown) {
    return fail(
      'engine_unavailable',
      `The package node-llama-cpp can't be loaded (${messageOf(thrown)}). Run npm ci in the project's folder, or use another inference server.`,
    );
  }
  const log = new LlamaLog();
  const { gpu: wanted } = options;
  let llama: import('node-llama-cpp').Llama;
  try {
    llama = await library.getLlama({
      gpu: wanted === 'cpu' ? false : wanted,
      build: 'never',
      skipDownload: true,
      progressLogs: false,
      logger(level, message) {
        log.take(message);
        process.stderr.write(`${new Date().toISOString()} ${level} ${message.trim()}\n`);
      },
    });
  } catch (thrown) {
    const which = wanted === 'auto' || wanted === 'cpu' ? 'this machine' : `${wanted} on this machine`;
    return fail(
      'engine_unavailable',
      `node-llama-cpp has no program that runs on ${which} (${messageOf(thrown)}). Run npm ci again with optional packages, or choose the CPU.`,
    );
  }
  // One core is the desktop's: threads that wait for one that has none spin, and all stand still.
  const threads = Math.max(1, options.threads ?? llama.cpuMathCores - 1);
  // A Vulkan loader without a device is no GPU, though the library took it for one.
  const gpuDevices = llama.gpu === false ? [] : await llama.getGpuDeviceNames();
  const gpu = llama.gpu === false || gpuDevices.length === 0 ? 'cpu' : llama.gpu;
  if (wanted !== 'auto' && wanted !== gpu) {
    await llama.dispose();
    return fail(
      'engine_unavailable',
      `There is no device for ${wanted} on this machine, or no program for it. Install its driver, or choose the CPU.`,
    );
  }
  // Contexts share the cores a token each in turn; a GPU does the work itself. More threads than cores
  // spin against each other (1310 ms a token instead of 15, measured).
  llama.maxThreads = gpu === 'cpu' ? threads : 0;
  const facts: EngineFacts = {
    pid: process.pid,
    gpu,
    gpuDevices,
    threads,
    version: `node-llama-cpp ${await library.getModuleVersion()}, llama.cpp ${llama.llamaCppRelease.release}`,
  };
  const models = new ModelStore(library, llama, log, facts, options.generation);
  const contexts = new ContextStore(library, llama, log, models, facts, options.generation);
  const steps = new Steps();
  const embeddings = new EmbeddingContexts(threads, steps);
  const handlers: EngineHandlers = {
    loadModel: ({ path, gpuLayers }, call) =>
      steps.during((step) =>
        models.load(path, gpuLayers, call.signal, (share) => {
          step.again();
          call.tell(share);
        }),
      ),
    async unloadModel({ modelId, force }) {
      const last = models.release(modelId, force);
      if (!last.ok || !last.value) return last;
      await Promise.all([contexts.disposeOf(modelId), embeddings.disposeOf(modelId)]);
      await models.unload(modelId);
      return ok(true);
    },
    estimateContext: (request) => contexts.estimate(request),
    createContext: (request) => steps.during(() => contexts.create(request)),
    async disposeContext(contextId) {
      await contexts.dispose(contextId);
      return ok(null);
    },
    clearContext: (contextId) => contexts.use(contextId, (held) => contexts.clear(held)),
    async tokenize({ modelId, text, special }) {
      const model = models.get(modelId);
      if (!model.ok) return model;
      return ok(model.value.model.tokenize(text, special).map(Number));
    },
    decode: (request, call) =>
      contexts.use(request.contextId, (held) =>
        decode(held, request, call.tell, steps, AbortSignal.any([call.signal, held.leaving.signal])),
      ),
    saveState: ({ contextId, path }) =>
      contexts.use(contextId, (held) => steps.during(() => saveState(held, path))),
    restoreState: ({ contextId, record }) =>
      contexts.use(contextId, (held) =>
        steps.during(() => restoreState(held, record, () => contexts.remake(held))),
      ),
    chat: (request, call) =>
      contexts.use(request.contextId, (held) =>
        chat(library, held, request, call.tell, steps, AbortSignal.any([call.signal, held.leaving.signal])),
      ),
    complete: (request, call) =>
      contexts.use(request.contextId, (held) =>
        complete(
          library,
          held,
          request,
          call.tell,
          steps,
          AbortSignal.any([call.signal, held.leaving.signal]),
        ),
      ),
    async openEmbeddings(modelId) {
      const model = models.get(modelId);
      return model.ok ? await embeddings.open(model.value) : model;
    },
    async embed(request, call) {
      const model = models.get(request.modelId);
      return model.ok ? await embeddings.embed(model.value, request, call.signal) : model;
    },
    readAhead: (path, call) => readAhead(path, () => contexts.busy === 0, call.signal),
    async memory() {
      const { cpuRam, gpuVram } = await llama.getLlamaMemoryUsage();
      return ok({
        hostBytes: cpuRam,
        deviceBytes: gpu === 'cpu' ? null : gpuVram,
        residentBytes: process.memoryUsage.rss(),
      });
    },
  };
  return ok({ facts, handlers, longestStepMs: () => steps.longestMs(), close: () => llama.dispose() });
}
