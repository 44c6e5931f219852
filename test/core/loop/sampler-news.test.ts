import { describe, expect, it } from 'vitest';
import { SamplerNews } from '../../../electron/core/loop/sampler-news.ts';

const trouble = (code: string) => ({ troubles: [{ code, message: `Said of ${code}.`, deviceId: null }] });
const restarted = trouble('sampler-restarted');
const stuck = trouble('sampler-stuck');
const fine = { troubles: [] };

describe('how the sampler fares is told (rule 21)', () => {
  it('tells that it was replaced, once for a story, with how often', () => {
    const news = new SamplerNews();
    expect(news.take(restarted, 0)).toEqual([
      {
        kind: 'sampler_restarted',
        reason: 'Said of sampler-restarted. Until it answers, no guard acts on a reading that is too old.',
        numbers: { restarts: 1 },
      },
    ]);
    expect(news.take(fine, 500)).toEqual([]);
    expect(news.take(restarted, 1_000)).toEqual([]);
    expect(news.take(restarted, 59_999)).toEqual([]);
    expect(news.take(restarted, 60_000)).toMatchObject([{ numbers: { restarts: 3 } }]);
  });

  it('tells that processes hang in the driver as trouble of the driver, once until it answers again', () => {
    const news = new SamplerNews();
    expect(news.take(stuck, 0)).toEqual([
      { kind: 'driver_trouble', reason: 'Said of sampler-stuck.', numbers: {} },
    ]);
    expect(news.take(stuck, 30_000)).toEqual([]);
    expect(news.take(restarted, 31_000)).toMatchObject([{ kind: 'sampler_restarted' }]);
    expect(news.take(stuck, 32_000)).toEqual([]);
    expect(news.take(fine, 40_000)).toEqual([]);
    expect(news.take(stuck, 50_000)).toHaveLength(1);
  });

  it('leaves what fails of a single device to that device', () => {
    const news = new SamplerNews();
    expect(news.take(trouble('nvidia-smi-exit-9'), 0)).toEqual([]);
  });
});
