import type { Browser } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { sampleHistory, sampleReplay, sampleSettings } from '../support/answers.ts';
import { launchBrowser } from '../support/browser.ts';
import { type OpenPage, openPage } from '../support/open-page.ts';

let browser: Browser;
let there: OpenPage;

beforeAll(async () => {
  browser = await launchBrowser();
});
afterAll(async () => {
  await browser?.close();
});
afterEach(async () => {
  expect(there.complaints).toEqual([]);
  await there[Symbol.asyncDispose]();
});

async function open(hash = '#history', change: Parameters<typeof sampleHistory>[0] = {}): Promise<OpenPage> {
  there = await openPage(browser, 'fine', {
    hash,
    answers: {
      history: sampleHistory(change),
      replay: sampleReplay({}),
      settings: sampleSettings({}),
      'change-setting': sampleSettings({}),
    },
  });
  await there.page.locator('.readout tbody tr').first().waitFor();
  return there;
}

describe('page: history', () => {
  it('draws who held the memory, and says it in a table', async () => {
    const { page } = await open();
    await page.locator('.plot canvas').waitFor();
    expect(await page.locator('.readout tbody tr').allTextContents()).toEqual([
      'qwen-27b0 Bpeak 17.8 GB',
      'pipeline-9b10.6 GBpeak 10.6 GB',
      expect.stringMatching(/^Desktop2\.\d GBpeak 2\.8 GB$/),
      expect.stringMatching(/^Free\d+\.?\d* GB$/),
    ]);
    // The model's own colour is on the canvas, so the band is really drawn.
    const drawn = await page.locator('.plot canvas').evaluate((canvas) => {
      if (!(canvas instanceof HTMLCanvasElement)) return 0;
      const context = canvas.getContext('2d');
      const { data } = context?.getImageData(0, 0, canvas.width, canvas.height) ?? { data: [] };
      const colours = new Set<string>();
      for (let at = 0; at < data.length; at += 400)
        colours.add(`${data[at]},${data[at + 1]},${data[at + 2]}`);
      return colours.size;
    });
    expect(drawn).toBeGreaterThan(3);
  });

  it('is walked through with the arrow keys, and hovering tells the same', async () => {
    const { page } = await open();
    const chart = page.getByRole('group', { name: /^Memory of Radeon/ });
    await chart.focus();
    await page.keyboard.press('Home');
    await page.getByText(/^At .*\d{4}/).waitFor();
    expect(await page.locator('.readout tbody tr').first().textContent()).toMatch(/^qwen-27b0 B/);
    for (let step = 0; step < 65; step += 1) await page.keyboard.press('ArrowRight');
    expect(await page.locator('.readout tbody tr').first().textContent()).toMatch(/^qwen-27b15 GB/);
    const box = await page.locator('.u-over').boundingBox();
    if (box === null) throw new Error('the chart is drawn');
    await page.mouse.move(box.x + box.width * 0.5, box.y + 40);
    await expect
      .poll(() => page.locator('.readout tbody tr').first().textContent())
      .toMatch(/^qwen-27b17\.8 GB/);
  });

  it('goes to the moment of an event, and tells what happened there', async () => {
    const { page } = await open();
    await page.locator('.event a').first().click();
    await expect
      .poll(() => page.locator('.near').allTextContents())
      .toContainEqual(expect.stringContaining('Unloading qwen-27b'));
    expect(await page.evaluate(() => location.hash)).toMatch(/^#history-\d+$/);
  });

  it('asks for another range, and for earlier', async () => {
    const { page, server } = await open();
    await page.getByRole('radio', { name: '7 days' }).click();
    const spans = (): number[] =>
      server.asked
        .filter((one) => one.path === '/api/history')
        .map(
          ({ body }) =>
            Number(Reflect.get(Object(body), 'toMs')) - Number(Reflect.get(Object(body), 'fromMs')),
        );
    await expect.poll(spans).toContain(7 * 86_400_000);
    await page.getByRole('button', { name: 'Earlier' }).click();
    await expect
      .poll(() => server.asked.filter((one) => one.path === '/api/history').length)
      .toBeGreaterThanOrEqual(3);
    expect(await page.getByRole('button', { name: 'Now' }).isEnabled()).toBe(true);
  });

  it('takes a suggested floor with one click, over the settings as they stand', async () => {
    const { page, server } = await open();
    await page.getByRole('button', { name: 'Keep 1.4 GB free' }).click();
    await page.getByText('1.4 GB is kept free from now on.').waitFor();
    expect(server.asked.find((one) => one.path === '/api/change-setting')?.body).toEqual({
      key: 'floor',
      yaml: '1.4GB',
      fingerprint: 'abc',
    });
  });

  it('runs the recorded days again with another floor, by keyboard', async () => {
    const { page, server } = await open();
    await page.getByText('5 unloads, 4 of them loaded again; memory was short 5 times.').waitFor();
    const floor = page.getByRole('slider', { name: 'Kept free for the desktop' });
    await floor.focus();
    for (let step = 0; step < 8; step += 1) await page.keyboard.press('ArrowRight');
    await expect
      .poll(() => server.asked.filter((one) => one.path === '/api/replay').at(-1)?.body)
      .toMatchObject({ floorBytes: 6e9, maxBig: null });
    await page.getByRole('switch', { name: 'One big model at a time' }).press('Space');
    await expect
      .poll(() => server.asked.filter((one) => one.path === '/api/replay').at(-1)?.body)
      .toMatchObject({ floorBytes: 6e9, maxBig: 1 });
    await page.getByRole('button', { name: 'Keep 6 GB free' }).waitFor();
    expect(await page.locator('.figures tbody tr').first().textContent()).toBe(
      'Models unloaded by the guards35',
    );
  });

  it('says that nothing is recorded yet', async () => {
    there = await openPage(browser, 'fine', {
      hash: '#history',
      answers: { history: sampleHistory({ devices: [], events: [], floors: [] }) },
    });
    await there.page.getByText('Nothing is recorded of this time yet.').waitFor();
  });
});
