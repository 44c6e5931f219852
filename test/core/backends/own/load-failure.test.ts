import { describe, expect, it } from 'vitest';
import { whyInLog } from '../../../../electron/core/backends/own/load-failure.ts';

const SPAWNED = '0.14.867.579 I srv          load: spawning server instance with name=big on port 45217';

describe('why the last load of a model failed, by its router’s log', () => {
  it('is what its own server said first, whoever else speaks', () => {
    const lines = [
      SPAWNED.replace('45217', '40000'),
      '[40000] 0.00.100.000 E srv    load_model: failed to load model, /models/other.gguf',
      SPAWNED,
      '[41111] 0.00.100.000 E another one: error',
      '[45217] 0.00.017.065 I srv    load_model: loading model',
      '[45217] 1.06.520.077 E ggml_backend_cuda_buffer_type_alloc_buffer: allocating 4480.00 MiB on device 0: cudaMalloc failed: out of memory.',
      '[45217] 1.06.520.084 E llama_kv_cache_init: failed to allocate buffer for kv cache',
      '0.14.868.747 I srv           run: instance name=big exited with status 1',
    ];
    expect(whyInLog(lines, 'big')).toBe(
      'ggml_backend_cuda_buffer_type_alloc_buffer: allocating 4480.00 MiB on device 0: cudaMalloc failed: out of memory',
    );
  });

  it('is not known where the log does not tell', () => {
    expect(whyInLog([], 'big')).toBeNull();
    expect(whyInLog([SPAWNED], 'big')).toBeNull();
    expect(whyInLog([SPAWNED, '[45217] I all is well'], 'big')).toBeNull();
    expect(whyInLog([SPAWNED, '[45217] error'], 'bi')).toBeNull();
    expect(whyInLog(['[] error', SPAWNED.replace('45217', '')], 'big')).toBeNull();
  });
});
