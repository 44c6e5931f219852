import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { samplePlan } from '../support/answers.ts';
import { launchBrowser } from '../support/browser.ts';
import { type PageServer, startPageServer } from '../support/page-server.ts';
import { loadState } from '../support/states.ts';

let browser: Browser;
let server: PageServer | null = null;
let context: BrowserContext | null = null;
/** Whatever the page complained about; every test ends with none. */
const complaints: string[] = [];

beforeAll(async () => {
  browser = await launchBrowser();
});
afterAll(async () => {
  await browser?.close();
});
afterEach(async () => {
  await context?.close();
  await server?.close();
  context = null;
  server = null;
  expect(complaints.splice(0)).toEqual([]);
});

interface View {
  readonly width?: number;
  readonly height?: number;
  readonly colorScheme?: 'light' | 'dark';
}

async function open(
  name: string,
  view: View = {},
): Promise<{ readonly page: Page; readonly server: PageServer }> {
  server = await startPageServer(loadState(name, Date.now()));
  context = await browser.newContext({
    viewport: { width: view.width ?? 1100, height: view.height ?? 720 },
    colorScheme: view.colorScheme ?? 'light',
    reducedMotion: 'reduce',
  });
  const page = await context.newPage();
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('console', (message) => {
    // A refused request is part of some tests; what the page itself says is not.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
      complaints.push(message.text());
  });
  await page.goto(server.url);
  await page.locator('.connection.live').waitFor();
  return { page, server };
}

/** Goes over to another state on the open page: much quicker than to open it anew. */
async function show(page: Page, over: PageServer, name: string): Promise<void> {
  const id = over.show(loadState(name, Date.now()));
  await page.locator(`[data-event="${id}"]`).waitFor();
}

describe('page: what it says', () => {
  it('puts a sentence first, then who holds what', async () => {
    const { page } = await open('fine');
    expect(await page.locator('.sentence').textContent()).toMatch(
      /^Room for a 16\sGB model\. The desktop keeps 4\sGB\.$/,
    );
    expect(await page.locator('.device .facts').textContent()).toMatch(
      /Radeon AI PRO R9700.*34\.2 GB in all.*drives this display.*13\.5 GB in use.*read \d/,
    );
    const keys = await page.locator('.keys li:not(.spoken)').allTextContents();
    expect(keys.map((key) => key.trim())).toEqual([
      'Desktop 1.7 GB firefox 800 MB, kwin_wayland 600 MB, 4 more',
      'bge-m3 1.2 GB',
      'pipeline-9b 10.6 GB',
      'free 20.7 GB',
    ]);
  });

  it.each([
    ['threatened', '.device.warning', /Only 3\.2\sGB free/],
    ['critical', '.device.critical', /The driver is moving graphics memory/],
    ['stale', '.device.stale', /has not answered/],
    ['no-gpu', '.device', /No GPU here/],
  ])('%s', async (name, card, words) => {
    const { page } = await open(name);
    expect(await page.locator(`${card} .sentence`).textContent()).toMatch(words);
  });

  it('helps whoever has no model server yet', async () => {
    const { page } = await open('empty');
    expect(await page.locator('.empty pre').first().textContent()).toContain('llama-server');
  });

  it('takes a model file of whoever wants none, and says what it is called or what is wrong with it', async () => {
    const { page, server } = await open('empty');
    const field = page.getByLabel(/No server\?/);
    const message = 'There is no file /models/smol.gguf.';
    server.answer('/api/add-model', { status: 400, body: { error: { code: 'bad_model_file', message } } });
    await field.fill('/models/smol.gguf');
    await field.press('Enter');
    await page.getByText(message).waitFor();
    expect(await field.inputValue()).toBe('/models/smol.gguf');
    server.answer('/api/add-model', { status: 200, body: { message: 'embedded/smol is there.' } });
    await page.getByRole('button', { name: 'Add this model' }).click();
    await page.getByText('embedded/smol is there.').waitFor();
    expect(server.asked.filter((one) => one.path === '/api/add-model').map((one) => one.body)).toEqual([
      { name: null, file: '/models/smol.gguf' },
      { name: null, file: '/models/smol.gguf' },
    ]);
    expect(await field.inputValue()).toBe('');
  });
});

describe('page: the lanes', () => {
  it('whose turn it is, since when, and who waits', async () => {
    const { page } = await open('lane-held');
    const card = page.getByRole('region', { name: 'Lane · router on 127.0.0.1:8080' });
    expect(await card.getByRole('listitem').allTextContents()).toEqual([
      expect.stringMatching(
        /^writer has the lanepipeline-9b · interactive · python3 writer\.py.*\(pid 41822\).*waits?4\d s$/,
      ),
      expect.stringMatching(/^nightly was sent elsewhere.*5 min$/),
    ]);
    expect(await card.locator('.notice').count()).toBe(0);
  });

  it('a stuck one and one that is gone round are marked, each in its own card', async () => {
    const { page } = await open('lane-trouble');
    const notices = page.locator('.lanes .notice.warning');
    expect(await notices.allTextContents()).toEqual([
      expect.stringContaining('has been held by pid 5120'),
      expect.stringContaining('used outside the lane by pid 7301'),
    ]);
    expect(await page.locator('[data-lane="ollama"] .turn').allTextContents()).toEqual([
      expect.stringContaining('Free'),
    ]);
  });

  it('are not there where none is set or used', async () => {
    const { page, server } = await open('lane-held');
    expect(await page.locator('.lane').count()).toBe(1);
    await show(page, server, 'fine');
    expect(await page.locator('.lane').count()).toBe(0);
  });
});

describe('page: what a person can do', () => {
  it('loads, unloads and pins by name', async () => {
    const { page, server } = await open('fine');
    await page.getByRole('button', { name: 'Load qwen-27b', exact: true }).click();
    await page.getByRole('button', { name: 'Unload bge-m3', exact: true }).click();
    await page.getByRole('button', { name: 'Pin vision-8b' }).click();
    await expect
      .poll(() => server.posted)
      .toEqual([
        { path: '/api/models/router%2Fqwen-27b/load', body: { force: false } },
        { path: '/api/models/router%2Fbge-m3/unload', body: { force: false } },
        { path: '/api/models/router%2Fvision-8b/pin', body: {} },
      ]);
  });

  it('asks before a request is cut off; keeping it is the answer of Enter and of Escape', async () => {
    const { page, server } = await open('fine');
    const unload = page.getByRole('button', { name: 'Unload pipeline-9b' });
    const question = page.getByRole('alertdialog');
    for (const key of ['Enter', 'Escape']) {
      await unload.click();
      await question.waitFor();
      await page.keyboard.press(key);
      await question.waitFor({ state: 'detached' });
    }
    expect(server.posted).toEqual([]);
    await unload.click();
    await question.getByRole('button', { name: 'Unload anyway' }).click();
    await expect
      .poll(() => server.posted)
      .toEqual([{ path: '/api/models/router%2Fpipeline-9b/unload', body: { force: true } }]);
  });

  it('forgets an agent of the engine once that is confirmed, and only then', async () => {
    const { page, server } = await open('three-agents');
    const forget = page.getByRole('button', { name: 'Forget indexer and its conversation' });
    const question = page.getByRole('alertdialog');
    for (const key of ['Enter', 'Escape']) {
      await forget.click();
      await question.waitFor();
      await page.keyboard.press(key);
      await question.waitFor({ state: 'detached' });
    }
    expect(server.asked.some((one) => one.path === '/api/forget-agent')).toBe(false);
    const message = 'No agent indexer is registered.';
    server.answer('/api/forget-agent', { status: 400, body: { error: { code: 'bad_input', message } } });
    await forget.click();
    await question.getByRole('button', { name: 'Forget it' }).click();
    await question.getByText(message).waitFor();
    expect(server.asked.filter((one) => one.path === '/api/forget-agent').map((one) => one.body)).toEqual([
      { agent: 'indexer' },
    ]);
    // Callers of the gateway are not the engine's to forget.
    expect(await page.getByRole('button', { name: /^Forget .* conversation$/ }).count()).toBe(1);
  });

  it('shows a denial with its numbers, and loads anyway when told to', async () => {
    const { page, server } = await open('threatened');
    const path = '/api/models/router%2Fvision-8b/load';
    const message =
      'vision-8b needs 6.4 GB, and 3.2 GB is free with 4 GB kept for the desktop: 7.2 GB would have to go.';
    const numbers = { requestedBytes: 6.4e9, freeBytes: 3.2e9, floorBytes: 4e9, shortBytes: null };
    server.answer(path, { status: 503, body: { error: { code: 'vram_denied', message, numbers } } });
    await page.getByRole('button', { name: 'Load vision-8b', exact: true }).click();
    const refusal = page.getByRole('alert');
    await refusal.waitFor();
    expect(await refusal.textContent()).toContain(message);
    const figures = await refusal.locator('dl div').allTextContents();
    expect(figures).toEqual(['asked for6.4 GB', 'free3.2 GB', 'floor4 GB', 'missingunknown']);
    server.answer(path, { status: 200, body: { message: 'Loaded.' } });
    await refusal.getByRole('button', { name: 'Load anyway' }).click();
    await expect
      .poll(() => server.posted.map((entry) => entry.body))
      .toEqual([{ force: false }, { force: true }]);
    await refusal.waitFor({ state: 'detached' });
  });

  it('shows what a load would do before it is done, and loads anyway with what may happen', async () => {
    const { page, server } = await open('fine');
    const denial = 'qwen-27b needs 18.6 GB; 20.7 GB is free and 4.0 GB of it is kept for the desktop.';
    const risks = ['2.1 GB would be left, 1.9 GB less than the desktop should have.'];
    server.answer('/api/plan', { status: 200, body: samplePlan({ verdict: 'denied', denial, risks }) });
    server.answer('/api/load-anyway', { status: 200, body: { message: 'Remembered.' } });
    const ask = page.getByRole('button', { name: 'qwen-27b: What if I load it?' });
    await ask.click();
    const panel = page.getByRole('region', { name: 'qwen-27b: What if I load it?' });
    await panel.getByText('It would be refused.').waitFor();
    expect(await ask.getAttribute('aria-expanded')).toBe('true');
    expect(await panel.textContent()).toContain(denial);
    expect(await panel.locator('.risks li').allTextContents()).toEqual(risks);
    expect(await panel.locator('.contexts div').allTextContents()).toEqual([
      '8k17.4 GB',
      '32k set now18.6 GB',
      '128k24.1 GB, does not fit',
    ]);
    expect(await panel.locator('.contexts .dimmed').count()).toBe(1);
    expect(server.posted).toEqual([]);
    await panel.getByRole('checkbox', { name: /always load this model anyway/ }).click();
    await expect
      .poll(() => server.asked.find((one) => one.path === '/api/load-anyway')?.body)
      .toEqual({ model: 'router/qwen-27b', always: true });
    await panel.getByRole('button', { name: 'Load anyway: qwen-27b' }).click();
    await expect
      .poll(() => server.posted)
      .toEqual([{ path: '/api/models/router%2Fqwen-27b/load', body: { force: true } }]);
    expect(await panel.count()).toBe(0);
  });

  it('cancels a load, takes back an eviction and restores', async () => {
    const { page, server } = await open('after-eviction');
    await page.getByRole('button', { name: 'Cancel loading qwen-27b' }).click();
    await page.getByRole('button', { name: 'Load again: vision-8b' }).click();
    await page.getByRole('button', { name: 'Load it again: vision-8b' }).click();
    await expect
      .poll(() => server.posted.map((entry) => entry.path))
      .toEqual([
        '/api/models/router%2Fqwen-27b/unload',
        '/api/models/router%2Fvision-8b/load',
        '/api/restore',
      ]);
  });

  it('sets the guards and the sleep of big models, and shows what the runtime then says', async () => {
    const { page, server } = await open('fine');
    const observe = page.getByRole('radio', { name: 'Observe' });
    await page.getByText('Observe', { exact: true }).click();
    await page.getByText('Pause', { exact: true }).click();
    await page.getByRole('button', { name: 'Big models: awake' }).click();
    await expect
      .poll(() => server.posted)
      .toEqual([
        { path: '/api/guards', body: { mode: 'observe', backend: null } },
        { path: '/api/guards', body: { mode: 'pause', backend: null, for: 1_800_000 } },
        { path: '/api/sleep', body: {} },
      ]);
    // A read-only copy: the control shows what is, not what was asked for.
    expect(await observe.isChecked()).toBe(false);
    const { state } = loadState('fine', Date.now());
    server.sendState({
      ...state,
      revision: state.revision + 1,
      policy: { ...state.policy, guards: 'observe' },
      asleep: { since: state.at, until: null },
    });
    await expect.poll(() => observe.isChecked()).toBe(true);
    await page.getByRole('button', { name: 'Big models: asleep' }).click();
    await expect.poll(() => server.posted.at(-1)?.path).toBe('/api/wake');
  });

  it('turns the guards on for a server that was found', async () => {
    const { page, server } = await open('found-backend');
    await page.getByRole('button', { name: 'Guard it too: router-8080' }).click();
    await expect
      .poll(() => server.posted)
      .toEqual([{ path: '/api/guards', body: { mode: 'on', backend: 'router-8080' } }]);
  });

  it('can be reached by keyboard alone, each control with a name', async () => {
    const { page } = await open('found-backend');
    const names: string[] = [];
    for (let step = 0; step < 40; step += 1) {
      await page.keyboard.press('Tab');
      const name = await page.evaluate(() => {
        const node = document.activeElement;
        if (node === null || node === document.body) return null;
        return (
          node.getAttribute('aria-label') ?? node.closest('label')?.textContent ?? node.textContent ?? ''
        );
      });
      if (name === null) break;
      names.push(name.trim());
    }
    expect(names).toEqual([
      'Now',
      'History',
      'Events',
      'Settings',
      'Observe',
      'Big models: awake',
      'Guard it too: router-8080',
      'Pin mixtral-small: the guards never unload it',
      'Unload mixtral-small',
      'vision-8b: What if I load it?',
      'Pin vision-8b: the guards never unload it',
      'Load vision-8b',
      'All events',
    ]);
  });
});

describe('page: it is live', () => {
  it('follows each snapshot, and drops one that comes late', async () => {
    const { page, server } = await open('fine');
    const next = loadState('threatened', Date.now()).state;
    const { revision } = loadState('fine').state;
    server.sendState({ ...next, revision: revision + 2 });
    await expect.poll(() => page.locator('.sentence').textContent()).toMatch(/Only 3\.2/);
    server.sendState({ ...loadState('fine', Date.now()).state, revision: revision + 1 });
    server.sendEvent({
      id: 9001,
      at: new Date().toISOString(),
      kind: 'denied',
      reason: 'Refused a load.',
      numbers: {},
    });
    await page.locator('[data-event="9001"]').waitFor();
    expect(await page.locator('.sentence').textContent()).toMatch(/Only 3\.2/);
  });

  it('touches nothing on the page when a reading says nothing new', async () => {
    const { page, server } = await open('many-models');
    const { state } = loadState('many-models', Date.now());
    await page.evaluate(() => {
      const seen = { count: 0 };
      Object.assign(globalThis, { seen });
      new MutationObserver((records) => {
        const real = records.filter((record) => {
          const node = record.target instanceof Element ? record.target : record.target.parentElement;
          return node?.closest('.facts') === null;
        });
        seen.count += real.length;
      }).observe(document.body, { subtree: true, childList: true, attributes: true, characterData: true });
    });
    for (let tick = 1; tick <= 20; tick += 1) {
      server.sendState({
        ...state,
        revision: state.revision + tick,
        at: new Date().toISOString(),
        devices: state.devices.map((device) => ({
          ...device,
          sampledAt: new Date().toISOString(),
          busyPercent: tick,
        })),
      });
    }
    server.sendEvent({ id: 9002, at: new Date().toISOString(), kind: 'woke', reason: 'Awake.', numbers: {} });
    await page.locator('[data-event="9002"]').waitFor();
    // One row was added, and the twelfth made room for it.
    expect(await page.evaluate(() => Reflect.get(globalThis, 'seen').count)).toBeLessThanOrEqual(2);
  });

  it('shows a lost connection with its age and what was known, and comes back by itself', async () => {
    const { page, server } = await open('fine');
    server.cut(503);
    await page.locator('.connection.lost').waitFor();
    expect(await page.locator('.connection').textContent()).toMatch(/^Connection lost.* ago$/);
    expect(await page.locator('.sentence').textContent()).toMatch(/^Room for/);
    expect(await page.locator('.content').evaluate((node) => getComputedStyle(node).filter)).not.toBe('none');
    server.restore();
    await page.locator('.connection.live').waitFor({ timeout: 15_000 });
    expect(await page.locator('.content').evaluate((node) => getComputedStyle(node).filter)).toBe('none');
  });

  it('says how to get in again when it may not read any more', async () => {
    const { page, server } = await open('fine');
    server.cut(401);
    await page.locator('.connection.locked').waitFor();
    expect(await page.getByText('npx landlord open').isVisible()).toBe(true);
  });
});
