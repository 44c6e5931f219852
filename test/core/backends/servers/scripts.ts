import { type Asked, move, type Reply, type Script, type StagedModel, type StagedState } from './server.ts';

/** What each kind of server answers, in the shapes its own documents and users show; values are made up. */

const member = (value: unknown, key: string): unknown =>
  typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined;
const bare = (asked: Asked): string => `${asked.method} ${asked.path.split('?')[0] ?? ''}`;
const is =
  (...states: readonly StagedState[]) =>
  (model: StagedModel) =>
    states.includes(model.state);

export const llamaCpp: Script = async (stage, asked) => {
  const models = [...stage.models.values()];
  switch (bare(asked)) {
    case 'GET /props':
      return {
        body: { role: 'router', build_info: 'b11669-test', default_generation_settings: { n_ctx: 0 } },
      };
    case 'GET /models':
      return {
        body: {
          data: models.map((model) => ({
            id: model.name,
            aliases: [],
            status: {
              value:
                model.state === 'odd' ? 'hibernating' : model.state === 'stopping' ? 'loaded' : model.state,
              args: ['llama-server', '--metrics', '--port', String(model.port ?? 0), ...(model.args ?? [])],
            },
            ...(model.contextTokens === undefined ? {} : { context_length: model.contextTokens }),
          })),
        },
      };
    case 'GET /metrics': {
      const name = new URLSearchParams(asked.path.split('?')[1]).get('model') ?? '';
      return { body: `llamacpp:requests_processing ${stage.models.get(name)?.busy === true ? 1 : 0}\n` };
    }
    case 'GET /slots':
      return { body: [{ id: 0, is_processing: false, n_prompt_tokens: 0 }] };
    case 'POST /models/load':
    case 'POST /models/unload': {
      const what = bare(asked).endsWith('/load') ? 'load' : 'unload';
      // It answers at once, long before it is done.
      const moving = move(stage, member(asked.body, 'model'), what);
      const { model, refusal } = await Promise.race([moving, settled()]);
      if (refusal !== null) return { status: 500, body: { error: { message: refusal } } };
      return model === null && !stage.models.has(String(member(asked.body, 'model')))
        ? { status: 404, body: { error: { message: 'model not found' } } }
        : { body: { success: true } };
    }
    case 'GET /models/sse':
      return 'stream';
    default:
      return undefined;
  }
};

async function settled(): Promise<{ model: null; refusal: null }> {
  await new Promise((resolve) => setTimeout(resolve, 5));
  return { model: null, refusal: null };
}

const SWAP_STATES: Readonly<Record<StagedState, string>> = {
  unloaded: 'stopped',
  loading: 'starting',
  loaded: 'ready',
  sleeping: 'ready',
  stopping: 'stopping',
  odd: 'hibernating',
};

export const llamaSwap: Script = async (stage, asked) => {
  const models = [...stage.models.values()];
  switch (bare(asked)) {
    case 'GET /running':
      return {
        body: {
          running: models
            .filter((model) => model.state !== 'unloaded')
            .map((model) => ({
              model: model.name,
              state: SWAP_STATES[model.state],
              cmd: `/opt/llama-server --model "/models/a b.gguf" \\\n  --ctx-size ${model.contextTokens ?? 4096} --port ${model.port ?? 5801}`,
              proxy: `http://127.0.0.1:${model.port ?? 5801}`,
              ttl: 300,
              name: '',
              description: '',
            })),
        },
      };
    case 'GET /v1/models':
      return { body: { object: 'list', data: models.map((model) => ({ id: model.name, object: 'model' })) } };
    case 'GET /api/version':
      return { body: { version: '217', commit: 'abc', build_date: 'today' } };
    case 'GET /api/events':
      return 'stream';
    default: {
      const [, kind, name] =
        /^\w+ \/(upstream|api\/models\/unload)\/(.+?)(?:\/health)?$/.exec(bare(asked)) ?? [];
      if (kind === undefined || name === undefined) return undefined;
      const what = kind === 'upstream' ? 'load' : 'unload';
      const { model, refusal } = await move(stage, decodeURIComponent(name), what);
      if (refusal !== null) return { status: 502, body: { error: refusal } };
      if (model === null) return { status: 404, body: { error: 'model not found' } };
      return { body: what === 'load' ? '{"status":"ok"}' : 'OK' };
    }
  }
};

export const BLOB = `sha256-${'5c'.repeat(32)}`;

export const ollama: Script = async (stage, asked) => {
  const models = [...stage.models.values()];
  const row = (model: StagedModel) => ({
    name: model.name,
    model: model.name,
    size: model.bytes ?? 3_000_000_000,
    digest: 'ab'.repeat(32),
    details: { format: 'gguf', family: 'llama' },
  });
  switch (bare(asked)) {
    case 'GET /api/version':
      return { body: { version: '0.34.2' } };
    case 'GET /api/ps':
      return {
        body: {
          models: models.filter(is('loading', 'loaded', 'stopping', 'sleeping', 'odd')).map((model) => ({
            ...row(model),
            size_vram: model.bytes ?? 3_000_000_000,
            expires_at: offset(
              model.expiresAt ?? (model.state === 'stopping' ? Date.now() - 60_000 : Date.now() + 300_000),
            ),
            ...(model.contextTokens === undefined ? {} : { context_length: model.contextTokens }),
          })),
        },
      };
    case 'GET /api/tags':
      return { body: { models: models.map(row) } };
    case 'POST /api/show':
      return {
        body: {
          modelfile: `# made up\nFROM /var/lib/ollama/blobs/${BLOB}\nTEMPLATE x\n`,
          parameters: 'num_ctx                        8192\nstop    "<end>"',
          model_info: { 'llama.context_length': 131_072 },
        },
      };
    case 'POST /api/generate': {
      const what = member(asked.body, 'keep_alive') === 0 ? 'unload' : 'load';
      const moving = move(stage, member(asked.body, 'model'), what);
      // An unload is answered at once, whatever still runs.
      const { model, refusal } = what === 'unload' ? await Promise.race([moving, settled()]) : await moving;
      if (refusal !== null) return { status: 500, body: { error: refusal } };
      if (model === null && !stage.models.has(String(member(asked.body, 'model')))) {
        return { status: 404, body: { error: 'model not found, try pulling it first' } };
      }
      return { body: { model: member(asked.body, 'model'), done: true, done_reason: what } };
    }
    default:
      return undefined;
  }
};

/** As Go writes it: nine digits and an offset. */
function offset(epochMs: number): string {
  const local = new Date(epochMs + 2 * 3_600_000).toISOString().slice(0, -1);
  return `${local}123456+02:00`;
}

export const lmStudio: Script = async (stage, asked) => {
  const models = [...stage.models.values()];
  switch (bare(asked)) {
    case 'GET /api/v1/models':
      return {
        body: {
          models: models.map((model) => ({
            type: 'llm',
            key: model.name,
            size_bytes: model.bytes ?? 2_000_000_000,
            loaded_instances: is('loaded', 'stopping', 'odd', 'sleeping')(model)
              ? [
                  {
                    id: `${model.name}:2`,
                    config: { context_length: model.contextTokens ?? 4096, parallel: 4 },
                  },
                ]
              : [],
            max_context_length: 131_072,
          })),
        },
      };
    case 'POST /api/v1/models/load':
    case 'POST /api/v1/models/unload': {
      const what = bare(asked).endsWith('/load') ? 'load' : 'unload';
      const name = what === 'load' ? member(asked.body, 'model') : instanceOf(asked);
      const { model, refusal } = await move(stage, name, what);
      if (refusal !== null) return { status: 500, body: { error: { message: refusal } } };
      return model === null
        ? { status: 404, body: { error: { message: 'no such model' } } }
        : { body: { status: 'loaded' } };
    }
    default:
      return undefined;
  }
};

function instanceOf(asked: Asked): string {
  return String(member(asked.body, 'instance_id')).replace(/:2$/, '');
}

/** Before 0.4.0: a list, and nothing that can be asked. */
export const lmStudioOld: Script = (stage, asked) => {
  if (bare(asked) !== 'GET /api/v0/models') return undefined;
  const word = (state: StagedState) =>
    state === 'odd'
      ? 'hibernating'
      : is('loaded', 'stopping', 'sleeping')({ name: '', state })
        ? 'loaded'
        : 'not-loaded';
  return {
    body: {
      data: [...stage.models.values()].map((model) => ({
        id: model.name,
        object: 'model',
        type: 'llm',
        arch: 'llama',
        compatibility_type: 'gguf',
        quantization: 'Q4_K_M',
        state: word(model.state),
        max_context_length: 131_072,
        ...(model.state === 'unloaded' ? {} : { loaded_context_length: model.contextTokens ?? 4096 }),
      })),
      object: 'list',
    },
  };
};

export const lemonade: Script = async (stage, asked) => {
  const models = [...stage.models.values()];
  switch (bare(asked)) {
    case 'GET /v1/health':
      return {
        body: {
          status: 'ok',
          version: '9.3.1',
          model_loaded: models.find(is('loaded'))?.name ?? null,
          all_models_loaded: models
            .filter(is('loaded', 'loading', 'stopping', 'sleeping', 'odd'))
            .map((model) => ({
              model_name: model.name,
              checkpoint: 'maker/repository:file.gguf',
              pid: model.pid ?? 4242,
              loaded: model.state !== 'loading',
              is_busy: model.busy ?? false,
              is_streaming: false,
              last_use: (model.lastUse ?? 1_790_000_000_000) / 1000,
              pinned: false,
              device: 'gpu',
              recipe: 'llamacpp',
              recipe_options: { ctx_size: model.contextTokens ?? 4096 },
              backend_url: `http://127.0.0.1:${model.port ?? 8001}/v1`,
            })),
        },
      };
    case 'GET /v1/models':
      return { body: { object: 'list', data: models.map((model) => ({ id: model.name, size: 2.5 })) } };
    case 'POST /v1/load':
    case 'POST /v1/unload': {
      const what = bare(asked).endsWith('/load') ? 'load' : 'unload';
      const { model, refusal } = await move(stage, member(asked.body, 'model_name'), what);
      if (refusal !== null) return { status: 500, body: { error: { message: refusal } } };
      return model === null
        ? { status: 404, body: { error: { message: 'model not found' } } }
        : { body: { status: 'success' } };
    }
    default:
      return undefined;
  }
};

export const NOT_FOUND: Reply = { status: 404, body: { error: { message: 'File Not Found', code: 404 } } };
/** LM Studio's way: status 200 and an error. */
export const UNEXPECTED: Reply = { status: 200, body: { error: 'Unexpected endpoint or method.' } };
