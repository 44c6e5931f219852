import { describe, expect, it } from 'vitest';
import { answered, DEVICE, decode, deskBench, MB, register } from '../../../support/desk-bench.ts';
import { until } from '../../../support/router.ts';

const PATH = '/models/shared.gguf';

describe('weights that the gateway serves too', () => {
  it('are booked with that model alone', async () => {
    // Not even room for the weights a second time.
    await using bench = await deskBench({ capBytes: 60 * MB });
    expect(await register(bench.desk, 'one', PATH)).toBe('CAP');
    bench.elsewhere.add(PATH);
    expect(await register(bench.desk, 'one', PATH)).toBe('ok');
    await answered(decode(bench.desk, 'one', 2, 'x'));
    expect(bench.ledger.book(DEVICE)?.bookedBytes).toBe(50 * MB);
    expect(bench.wrong()).toEqual([]);
  });

  it('go over to it and back as it comes and goes', async () => {
    await using bench = await deskBench({ capBytes: 1_000 * MB });
    const booked = (): number | undefined => bench.ledger.book(DEVICE)?.bookedBytes;
    expect(await register(bench.desk, 'one', PATH)).toBe('ok');
    bench.desk.settle();
    expect(booked()).toBe(100 * MB);
    bench.elsewhere.add(PATH);
    bench.desk.settle();
    await until(() => booked() === 0, 5_000, 'the model to have them');
    bench.elsewhere.delete(PATH);
    bench.desk.settle();
    await until(() => booked() === 100 * MB, 5_000, 'the agent to have them');
    expect(bench.wrong()).toEqual([]);
  });
});

it('lets a model leave that agents use too while another agent waits for just that room', async () => {
  await using bench = await deskBench({ capBytes: 400 * MB });
  for (const name of ['idle', 'asker']) expect(await register(bench.desk, name)).toBe('ok');
  const limits = { totalBytes: 100_000 * MB, floorBytes: 10 * MB, hardFloorBytes: 5 * MB };
  bench.ledger.setLimits(DEVICE, { ...limits, capBytes: 240 * MB });
  const { loadModel } = bench.engine;
  bench.roomToMake = async () => {
    // As the gateway's backend unloads it, which waits for the agents to have left.
    const model = await loadModel.call(bench.engine, { path: '/models/idle.gguf', gpuLayers: null });
    if (model.ok) await bench.engine.unloadModel(model.value.modelId);
  };
  expect((await answered(decode(bench.desk, 'asker', 4, 'x'))).generatedTokens).toBe(4);
  expect(bench.wrong()).toEqual([]);
});
