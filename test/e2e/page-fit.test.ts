import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { launchBrowser } from '../support/browser.ts';
import { type OpenPage, openPage, type PageView } from '../support/open-page.ts';
import { type PageServer, pageDir } from '../support/page-server.ts';
import { loadState, stateNames } from '../support/states.ts';

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

/** Goes over to another state on the open page: much quicker than to open it anew. */
async function show(page: Page, over: PageServer, name: string): Promise<void> {
  const id = over.show(loadState(name, Date.now()));
  await page.locator(`[data-event="${id}"]`).waitFor();
}

const SIZES = [
  { width: 1100, height: 720 },
  { width: 420, height: 720 },
] as const;

describe('page: the budget bar is drawn to scale', () => {
  it.each(['fine', 'after-eviction', 'critical', 'many-models', 'two-devices'])('%s', async (name) => {
    const { page } = await open(name);
    const { state } = loadState(name);
    const cards = page.locator('.device');
    expect(await cards.count()).toBe(state.devices.length);
    for (const [index, device] of state.devices.entries()) {
      const card = cards.nth(index);
      const bar = await card.locator('.bar').boundingBox();
      const floor = await card.locator('.mark.floor').boundingBox();
      if (bar === null || floor === null) throw new Error('the bar and its floor are drawn');
      const total = device.totalBytes ?? 0;
      const floorAt = bar.x + bar.width * (1 - (device.floorBytes ?? 0) / total);
      expect(Math.abs(floor.x + floor.width / 2 - floorAt)).toBeLessThan(1.5);

      const boxes = await card.locator('.segment').evaluateAll((nodes) =>
        nodes.map((node) => {
          const { left, right } = node.getBoundingClientRect();
          return { left, right };
        }),
      );
      let reached = bar.x;
      for (const box of boxes) {
        expect(Math.abs(box.left - reached)).toBeLessThan(0.7);
        reached = box.right;
      }
      expect(reached).toBeLessThanOrEqual(bar.x + bar.width + 0.7);
      // What is left of the bar is what would be free once all is loaded.
      const freeShare = ((device.freeBytes ?? 0) - device.outstandingBytes) / total;
      expect(Math.abs((bar.x + bar.width - reached) / bar.width - freeShare)).toBeLessThan(0.01);
    }
  });

  it.each(SIZES)('no label meets another, at $width px', async (size) => {
    const { page, server } = await open('fine', size);
    for (const name of ['fine', 'after-eviction', 'critical', 'two-devices', 'many-models', 'no-gpu']) {
      await show(page, server, name);
      const overlaps = await page.evaluate(() => {
        const visible = [
          ...document.querySelectorAll('.mark-line span, .segment b, .sentence, .device .facts, .keys li'),
        ].filter(
          (node) => node.getBoundingClientRect().width > 1 && getComputedStyle(node).display !== 'none',
        );
        const found: string[] = [];
        for (const [index, a] of visible.entries()) {
          for (const b of visible.slice(index + 1)) {
            if (a.contains(b) || b.contains(a)) continue;
            const [p, q] = [a.getBoundingClientRect(), b.getBoundingClientRect()];
            const apart =
              p.right <= q.left + 1 ||
              q.right <= p.left + 1 ||
              p.bottom <= q.top + 1 ||
              q.bottom <= p.top + 1;
            if (!apart) found.push(`${a.textContent} | ${b.textContent}`);
          }
        }
        return found;
      });
      expect(overlaps, name).toEqual([]);
    }
  });
});

describe('page: it fits', () => {
  it('no state scrolls sideways, in both sizes and themes', async () => {
    const { page, server } = await open('fine');
    for (const size of SIZES) {
      await page.setViewportSize(size);
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme });
        for (const name of stateNames) {
          await show(page, server, name);
          const { scroll, client } = await page.evaluate(() => ({
            scroll: document.documentElement.scrollWidth,
            client: document.documentElement.clientWidth,
          }));
          expect(scroll, `${name} ${size.width} ${colorScheme}`).toBeLessThanOrEqual(client);
        }
      }
    }
  });

  it.each(SIZES)(
    'the first glance needs no scrolling at $width px: sentence, bar, keys and models',
    async (size) => {
      const { page, server } = await open('fine', size);
      for (const name of ['fine', 'threatened', 'critical', 'after-eviction', 'stale', 'no-gpu']) {
        await show(page, server, name);
        for (const part of ['.sentence', '.bar', '.keys', '.model']) {
          const box = await page.locator(part).first().boundingBox();
          expect((box?.y ?? 0) + (box?.height ?? 9999), `${name} ${part}`).toBeLessThanOrEqual(size.height);
        }
      }
    },
  );

  it('follows the system between light and dark', async () => {
    const { page } = await open('fine');
    const background = (): Promise<string> =>
      page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    expect(await background()).toBe('rgb(246, 245, 242)');
    await page.emulateMedia({ colorScheme: 'dark' });
    expect(await background()).toBe('rgb(23, 24, 26)');
  });

  it('weighs under 250 kB, compressed', () => {
    const files = readdirSync(pageDir, { recursive: true, encoding: 'utf8' }).map((file) =>
      join(pageDir, file),
    );
    const bytes = files
      .filter((file) => statSync(file).isFile())
      .reduce((sum, file) => sum + gzipSync(readFileSync(file)).length, 0);
    expect(bytes).toBeGreaterThan(20_000);
    expect(bytes).toBeLessThan(250_000);
  });
});
