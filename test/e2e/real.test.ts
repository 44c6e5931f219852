/** The page over the real runtime, with real llama-server processes on a simulated card: a day in short. */
import { readFile, writeFile } from 'node:fs/promises';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { launchBrowser } from '../support/browser.ts';
import { MIDDLE_SHAPE, TINY_SHAPE } from '../support/gguf.ts';
import { type LandlordBench, startLandlordBench } from '../support/landlord-runtime.ts';
import { freePort } from '../support/llama-server.ts';
import { startRouter, type TestRouter } from '../support/router.ts';

const GB = 1_000_000_000;
const WAIT = { timeout: 60_000 };

let browser: Browser;
let context: BrowserContext;
let page: Page;
let router: TestRouter;
let landlord: LandlordBench;

beforeAll(async () => {
  router = await startRouter({
    models: {
      'qwen-27b': { shape: MIDDLE_SHAPE },
      'mid-14b': { shape: MIDDLE_SHAPE },
      'bge-m3': { shape: TINY_SHAPE },
    },
  });
  landlord = await startLandlordBench({
    routerUrl: router.url,
    routerPid: () => router.pid(),
    totalBytes: 24 * GB,
    footprints: {
      'qwen-27b': { bytes: 14 * GB, rampMs: 0 },
      'mid-14b': { bytes: 9 * GB, rampMs: 0 },
      'bge-m3': { bytes: 1.2 * GB, rampMs: 0 },
    },
    desktop: [{ name: 'kwin_wayland', bytes: 1.5 * GB, type: 'G' }],
    config: 'small: [bge-m3] # the index\nidle: 1s',
    pagePort: await freePort(),
  });
  await landlord.seen();
  browser = await launchBrowser();
  context = await browser.newContext({ reducedMotion: 'reduce', locale: 'en-GB' });
  page = await context.newPage();
  await page.goto(landlord.runtime.openUrl);
  await page.locator('.connection.live').waitFor(WAIT);
});
afterAll(async () => {
  await browser?.close();
  await landlord?.[Symbol.asyncDispose]();
  await router?.[Symbol.asyncDispose]();
});

const go = async (hash: string): Promise<void> => {
  await page.evaluate((to) => {
    location.hash = to;
  }, hash);
};
const status = (model: string): Promise<string | null> =>
  page.locator(`[data-model="router/${model}"] .status`).textContent();
const config = (): Promise<string> => readFile(landlord.configFile, 'utf8');

describe('the page over the real runtime', () => {
  it('is set up by its guide, and one turn goes the whole way', async () => {
    await go('#start');
    await page.getByText('Simulated card, 24 GB.').waitFor(WAIT);
    await page.getByLabel(/One at a time/).check();
    await page.getByLabel(/Guard at once/).check();
    await page.getByRole('button', { name: 'Write these settings' }).click();
    await page.getByText('Written. They are in force now.').waitFor(WAIT);
    const written = await config();
    expect(written).toContain('maxBig: 1\n');
    expect(written).toContain('guards: on\n');
    expect(written).toContain('floor: 3GB\n');
    expect(written).toContain('# the index');
    await expect.poll(() => landlord.runtime.state().policy.maxBig, WAIT).toBe(1);
    await page.getByLabel('Model for the test').selectOption('router/bge-m3');
    await page.getByRole('button', { name: 'Try it' }).click();
    await page.getByText(/bge-m3 answered in .*Everything works/).waitFor(WAIT);
  });

  it('plans a load by the real figures, loads it, and shows its first eviction with the reason', async () => {
    await go('#now');
    await page.getByRole('button', { name: 'Load mid-14b', exact: true }).click();
    await expect.poll(() => status('mid-14b'), WAIT).toBe('idle');
    await page.getByRole('button', { name: 'qwen-27b: What if I load it?' }).click();
    const plan = page.getByRole('region', { name: 'qwen-27b: What if I load it?' });
    await plan
      .getByText(/^It fits once mid-14b \(9 GB\) left; then 7\.\d GB would stay free\.$/)
      .waitFor(WAIT);
    expect(await plan.locator('.contexts .present').count()).toBe(1);
    expect(landlord.model('router/qwen-27b').status).toBe('unloaded');
    await plan.getByRole('button', { name: 'Load it', exact: true }).click();
    await expect.poll(() => status('qwen-27b'), WAIT).toBe('idle');
    await expect.poll(() => status('mid-14b'), WAIT).toBe('not loaded');
    const told = page
      .locator('.events .event', { hasText: 'mid-14b' })
      .filter({ hasText: 'unloaded by a guard' });
    await told.first().waitFor(WAIT);
    expect(await page.locator('[data-model="router/mid-14b"] .evicted').textContent()).toMatch(
      /^Unloaded .*came back/,
    );
  });

  it('puts big models to sleep and wakes them', async () => {
    await page.getByRole('button', { name: 'Big models: awake' }).click();
    await page.getByRole('button', { name: 'Big models: asleep' }).waitFor(WAIT);
    await expect.poll(() => status('qwen-27b'), WAIT).toBe('not loaded');
    // Small ones stay; whether one is busy may not be told yet.
    expect(await status('bge-m3')).toMatch(/^(?:idle|loaded|busy)$/);
    await page.getByRole('button', { name: 'Load mid-14b', exact: true }).click();
    await page
      .getByRole('alert')
      .getByText(/asleep/)
      .waitFor(WAIT);
    await page.getByRole('button', { name: 'Big models: asleep' }).click();
    await page.getByRole('button', { name: 'Big models: awake' }).waitFor(WAIT);
  });

  it('refuses in numbers what can not fit, says what may happen, and remembers to load it anyway', async () => {
    landlord.card.set({ name: 'blender', bytes: 14 * GB, type: 'G' });
    await expect
      .poll(() => (landlord.runtime.state().devices[0]?.freeBytes ?? 24 * GB) < 9 * GB, WAIT)
      .toBe(true);
    await page.getByRole('button', { name: 'mid-14b: What if I load it?' }).click();
    const plan = page.getByRole('region', { name: 'mid-14b: What if I load it?' });
    await plan.getByText('It would be refused.').waitFor(WAIT);
    expect(await plan.textContent()).toMatch(/needs 9\.0 GB/);
    expect(await plan.locator('.risks li').first().textContent()).toMatch(/more than is free|would be left/);
    await plan.getByRole('checkbox', { name: /always load this model anyway/ }).check();
    await expect
      .poll(() => landlord.events.some((one) => one.reason.includes('loaded from now on even where')), WAIT)
      .toBe(true);
    await plan.getByRole('button', { name: 'Close' }).click();
    landlord.card.set({ name: 'blender', bytes: 0, type: 'G' });
    await expect.poll(() => (landlord.runtime.state().devices[0]?.freeBytes ?? 0) > 18 * GB, WAIT).toBe(true);
  });

  it('writes a changed setting into the YAML, keeps its comments, and tells an edit in between', async () => {
    await go('#settings');
    const field = page.getByLabel('cap', { exact: true });
    await field.fill('lots');
    await page
      .locator('[data-setting="cap"] .problem')
      .getByText(/"lots" is not an amount of memory/)
      .waitFor(WAIT);
    await field.fill('80%');
    await page.getByRole('button', { name: 'Save cap' }).click();
    await page.locator('[data-setting="cap"]').getByText('Saved').waitFor(WAIT);
    expect(await config()).toMatch(/cap: 80%\n/);
    expect(await config()).toContain('# the index');
    await expect.poll(() => landlord.runtime.state().devices[0]?.capBytes, WAIT).toBe(19.2 * GB);
    await writeFile(landlord.configFile, `${await config()}# by hand\n`);
    await field.fill('85%');
    await page.getByRole('button', { name: 'Save cap' }).click();
    await page.getByText('was changed meanwhile by someone else').waitFor(WAIT);
    expect(await config()).toMatch(/cap: 80%\n/);
    await page.getByRole('button', { name: 'Save cap' }).click();
    await page.locator('[data-setting="cap"]').getByText('Saved').waitFor(WAIT);
    expect(await config()).toMatch(/cap: 85%\n[\s\S]*# by hand/);
  });

  it('has the history of it all, with the eviction in it', async () => {
    await go('#history');
    await page.getByRole('radio', { name: '10 min' }).click();
    await page.locator('.readout tbody tr').first().waitFor(WAIT);
    await expect
      .poll(async () => (await page.locator('.readout tbody tr th').allTextContents()).join(), WAIT)
      .toMatch(/mid-14b.*bge-m3.*Desktop|Desktop/);
    await page.locator('.event', { hasText: 'unloaded by a guard' }).first().waitFor(WAIT);
    await page.getByText(/unloads?, |No model would have been unloaded/).waitFor(WAIT);
  });

  it('says that the connection is lost, and is back by itself with what happened meanwhile', async () => {
    await go('#now');
    const restarted = landlord.restart();
    await page.locator('.connection.lost').waitFor(WAIT);
    expect(await page.locator('.content').getAttribute('class')).toContain('old');
    await restarted;
    await page.locator('.connection.live').waitFor(WAIT);
    await expect.poll(() => page.locator('.content').getAttribute('class'), WAIT).not.toContain('old');
    await page.locator('.event', { hasText: 'VRAM Landlord was asked to stop' }).first().waitFor(WAIT);
    await expect.poll(() => status('bge-m3'), WAIT).toMatch(/^(?:idle|loaded)$/);
  });
});
