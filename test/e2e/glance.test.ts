/** What must be seen and reached whoever looks: at a glance, enlarged, with names of any script, without motion. */
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { samplePlan } from '../support/answers.ts';
import { findings } from '../support/axe.ts';
import { launchBrowser } from '../support/browser.ts';
import { type OpenPage, openPage, type PageView } from '../support/open-page.ts';
import type { PageServer } from '../support/page-server.ts';
import { loadState, type Scenario, stateNames } from '../support/states.ts';

let browser: Browser;
let there: OpenPage | null = null;

beforeAll(async () => {
  browser = await launchBrowser();
});
afterAll(async () => {
  await browser?.close();
});
afterEach(async () => {
  expect(there?.complaints ?? []).toEqual([]);
  await there?.[Symbol.asyncDispose]();
  there = null;
});

async function open(name: string, view: PageView = {}): Promise<OpenPage> {
  there = await openPage(browser, name, view);
  return there;
}

async function show(page: Page, over: PageServer, scenario: Scenario): Promise<void> {
  const id = over.show(scenario);
  await page.locator(`[data-event="${id}"]`).waitFor();
}

const SIZES = [
  { width: 1100, height: 720 },
  { width: 420, height: 720 },
] as const;

describe('page: at a glance', () => {
  it.each(SIZES)(
    'says without scrolling who has each lane, for how long and who waits, at $width px',
    async (size) => {
      const { page, server } = await open('fine', size);
      for (const [name, lanes] of [
        ['three-agents', 1],
        ['lane-held', 1],
        ['lane-trouble', 2],
      ] as const) {
        await show(page, server, loadState(name, Date.now()));
        const first = page.locator('[data-lane] .turn:first-child > .what > p:first-child');
        expect(await first.count(), name).toBe(lanes);
        for (const line of await first.all()) {
          const box = await line.boundingBox();
          expect((box?.y ?? 0) + (box?.height ?? 9999), name).toBeLessThanOrEqual(size.height);
        }
      }
      await show(page, server, loadState('three-agents', Date.now()));
      const turn = page.locator('[data-lane="router"] .turn').first();
      expect(await turn.locator('.waits').textContent()).toBe('reviewer waits');
      expect(await turn.locator('.age').textContent()).toMatch(/^\d+ s$/);
    },
  );

  it('keeps its header to two rows on a narrow window, also while big models sleep', async () => {
    const { page, server } = await open('asleep', SIZES[1]);
    for (const name of ['asleep', 'fine']) {
      await show(page, server, loadState(name, Date.now()));
      expect((await page.locator('header').boundingBox())?.height, name).toBeLessThan(76);
    }
  });

  it('puts a context of the engine away from where it is shown', async () => {
    const { page, server } = await open('three-agents');
    const slot = page.locator('[data-agent="engine/indexer"]');
    expect(await slot.textContent()).toContain('context on the card, 212 MB');
    expect(await slot.textContent()).toContain('came back in 0.3 s');
    await slot.getByRole('button', { name: /^Put away indexer/ }).click();
    await expect
      .poll(() => server.posted)
      .toEqual([{ path: '/api/models/engine%2Findexer/unload', body: { force: false } }]);
    expect(await page.getByRole('button', { name: /^Put away/ }).count()).toBe(1);
  });
});

/** Names as people may give them: Hebrew, Arabic, emoji, one without an end, one that turns the direction over. */
const NAMES = ['קוד-9b', 'نموذج-7b', '🦙-mini', 'x'.repeat(120), 'a\u202Egpj.b'];

function withNames(scenario: Scenario): Scenario {
  const { state } = scenario;
  const [model] = state.models;
  const [agent] = state.agents;
  if (model === undefined || agent === undefined) throw new Error('the state has a model and an agent');
  return {
    ...scenario,
    state: {
      ...state,
      models: NAMES.map((name) => ({ ...model, id: `router/${name}` })),
      tenants: NAMES.map((name) => ({
        id: `router/${name}`,
        kind: 'model' as const,
        name,
        deviceId: state.devices[0]?.id ?? '',
        predictedBytes: 1e9,
        measuredBytes: 1e9,
        pids: [],
      })),
      agents: NAMES.map((name) => ({ ...agent, id: `gateway/${name}`, agent: name })),
    },
  };
}

describe('page: whoever looks', () => {
  it('stays in its width when enlarged to 200 % and 400 %, on every page', async () => {
    // A window of 1100 px at 200 % has 550 px of its own, one of 1280 px at 400 % has 320.
    for (const width of [550, 320]) {
      const { page, server } = await open('three-agents', { width, height: 360 });
      for (const name of ['three-agents', 'critical', 'lane-trouble', 'asleep']) {
        await show(page, server, loadState(name, Date.now()));
        expect(await sideways(page), `${name} at ${width} px`).toBeLessThanOrEqual(0);
      }
      for (const hash of ['#history', '#events', '#settings', '#start']) {
        await page.evaluate((to) => {
          location.hash = to;
        }, hash);
        await page.locator('.card').first().waitFor();
        expect(await sideways(page), `${hash} at ${width} px`).toBeLessThanOrEqual(0);
      }
      await there?.[Symbol.asyncDispose]();
      there = null;
    }
  });

  it.each(SIZES)('keeps names of any script and length in their place, at $width px', async (size) => {
    const { page, server } = await open('three-agents', size);
    await show(page, server, withNames(loadState('three-agents', Date.now())));
    expect(await page.locator('.model').count()).toBe(NAMES.length);
    expect(await sideways(page)).toBeLessThanOrEqual(0);
    // A name that runs from right to left must not carry the words around it along.
    for (const selector of ['.model .what > p:first-child', '.slot .who > span:first-of-type']) {
      const before = await page.locator(selector).evaluateAll((nodes) =>
        nodes.map((node) => {
          const range = document.createRange();
          const [name, rest] = [node.querySelector('strong'), node.lastChild];
          if (name === null || rest === null) return false;
          range.selectNodeContents(rest);
          const after = [...range.getClientRects()].at(-1);
          const own = [...name.getClientRects()].filter(({ width }) => width > 0).at(-1);
          if (after === undefined || own === undefined) return false;
          return after.left >= own.right - 1 || after.top >= own.bottom - 1;
        }),
      );
      expect(before, selector).toEqual(NAMES.map(() => true));
    }
  });

  it('shows all of a fact that runs over several lines', async () => {
    const { page, server } = await open('three-agents', SIZES[1]);
    for (const width of [320, 420, 1100]) {
      await page.setViewportSize({ width, height: 720 });
      await show(page, server, loadState('three-agents', Date.now()));
      const cut = await page.locator('.facts > span').evaluateAll((nodes) =>
        nodes.flatMap((node) => {
          const range = document.createRange();
          range.selectNodeContents(node);
          const clip = (node.parentElement?.getBoundingClientRect().left ?? 0) + 9.6;
          const out = [...range.getClientRects()].some((box) => box.left < clip - 0.5);
          return out ? [node.textContent] : [];
        }),
      );
      expect(cut, `${width} px`).toEqual([]);
    }
  });

  it('moves nothing where less motion is asked for, and something where it is not', async () => {
    const { page } = await open('fine');
    const moving = (): Promise<readonly string[]> =>
      page.evaluate(() =>
        [...document.querySelectorAll('*')].flatMap((node) => {
          const { transitionDuration, animationDuration } = getComputedStyle(node);
          const still = [...transitionDuration.split(','), ...animationDuration.split(',')].every(
            (time) => Number.parseFloat(time) === 0,
          );
          return still ? [] : [node.className];
        }),
      );
    for (const hash of ['#now', '#history', '#events', '#settings', '#start']) {
      await page.evaluate((to) => {
        location.hash = to;
      }, hash);
      await page.locator('.card').first().waitFor();
      expect(await moving(), hash).toEqual([]);
    }
    await page.emulateMedia({ reducedMotion: 'no-preference' });
    await page.evaluate(() => {
      location.hash = '#now';
    });
    await page.locator('.segment').first().waitFor();
    expect((await moving()).length).toBeGreaterThan(0);
  });

  it.each(['light', 'dark'] as const)('axe finds nothing in any state, in %s', async (colorScheme) => {
    const { page, server } = await open('fine', { colorScheme });
    for (const name of stateNames) {
      await show(page, server, loadState(name, Date.now()));
      expect(await findings(page), name).toEqual([]);
    }
    await show(page, server, loadState('fine', Date.now()));
    server.answer('/api/plan', {
      status: 200,
      body: samplePlan({ verdict: 'denied', denial: 'No.', risks: ['A risk.'] }),
    });
    await page.getByRole('button', { name: 'qwen-27b: What if I load it?' }).click();
    await page.getByText('ctx-size').waitFor();
    const numbers = { requestedBytes: 6.4e9, freeBytes: 3.2e9 };
    const refused = { error: { code: 'vram_denied', message: 'Too large.', numbers } };
    server.answer('/api/models/router%2Fvision-8b/load', { status: 503, body: refused });
    await page.getByRole('button', { name: 'Load vision-8b', exact: true }).click();
    await page.getByRole('alert').waitFor();
    await page.getByRole('button', { name: 'Unload pipeline-9b' }).click();
    await page.getByRole('alertdialog').waitFor();
    expect(await findings(page), 'a plan, a denial and a question').toEqual([]);
    server.cut(401);
    await page.locator('.connection.locked').waitFor();
    expect(await findings(page), 'locked').toEqual([]);
  });
});

/** Pixels by which the page is wider than its window. */
function sideways(page: Page): Promise<number> {
  return page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
}
