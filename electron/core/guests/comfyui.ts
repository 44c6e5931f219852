import { fail, ok, type Result } from '../../../shared/errors.ts';
import { field, httpClient, objectionTo } from '../backends/http.ts';

/** A ComfyUI server's own word (its server.py: `/system_stats`, `/queue`, `/free`). */
export interface ComfyUi {
  /** Errors where it is none, or does not answer. */
  prove(): Promise<Result<{ readonly version: string | null }>>;
  /** Whether a picture is being made, or waits to be; null: it does not say. */
  isWorking(): Promise<boolean | null>;
  /** Asks it to let its models and its caches go; it does so between two pictures. */
  free(): Promise<Result<void>>;
}

const LIMIT_MS = 3_000;

export function comfyUi(url: string): ComfyUi {
  const http = httpClient(url, null);
  const limits = { timeoutMs: LIMIT_MS };
  return {
    async prove() {
      const answer = await http.get('/system_stats', limits);
      const objection = objectionTo(answer, url, '/system_stats');
      if (objection !== null || answer.kind !== 'answer')
        return fail('backend_unreachable', objection ?? url);
      const system = field(answer.json, 'system');
      // Others answer JSON at this port, too: only ComfyUI lists devices with the memory its torch holds.
      const isComfy =
        field(system, 'comfyui_version') !== undefined || hasTorch(field(answer.json, 'devices'));
      const version = field(system, 'comfyui_version');
      if (!isComfy) return fail('not_proven', `${url} does not answer as ComfyUI does.`);
      return ok({ version: typeof version === 'string' ? version : null });
    },
    async isWorking() {
      const answer = await http.get('/queue', limits);
      if (answer.kind !== 'answer' || answer.status !== 200) return null;
      const lists = ['queue_running', 'queue_pending'].map((name) => field(answer.json, name));
      return lists.every(Array.isArray) ? lists.some((list) => Array.isArray(list) && list.length > 0) : null;
    },
    async free() {
      const answer = await http.post('/free', { unload_models: true, free_memory: true }, limits);
      if (answer.kind === 'failed') return fail('backend_unreachable', answer.message);
      // It answers without a body.
      return answer.status >= 200 && answer.status < 300
        ? ok(undefined)
        : fail('backend_refused', `${url}/free answers with status ${answer.status}.`);
    },
  };
}

function hasTorch(devices: unknown): boolean {
  return Array.isArray(devices) && devices.some((device) => field(device, 'torch_vram_total') !== undefined);
}
