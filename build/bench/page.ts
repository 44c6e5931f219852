import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { chromium, type Page } from 'playwright-core';
import { contentSecurityPolicy } from '../../electron/core/http/headers.ts';
import { readPageFile } from '../../electron/core/http/static-page.ts';
import type { LandlordEvent } from '../../shared/events.ts';
import { type LandlordState, type ModelState, STATE_SCHEMA } from '../../shared/state.ts';
import { findChromium } from '../setup/chromium.mjs';
import { type BenchReport, figures, quantile } from './report.ts';

const PAGE_DIR = fileURLToPath(new URL('../../out/renderer', import.meta.url));
const GB = 1_000_000_000;
/** As often as a runtime reads a card. */
const READING_MS = 500;

/**
 * The page as it is left open all day (five models, a reading twice a second that says nothing new),
 * and with 200 models and 5 000 events while every reading says something: frame times, and what
 * Chromium itself counts of its work.
 */
export async function benchPage(short = false): Promise<BenchReport> {
  const executablePath = findChromium(process.env);
  if (executablePath === null)
    return { part: 'page', sides: [], notes: ['No Chromium is here, so nothing was measured.'] };
  const browser = await chromium.launch({
    executablePath,
    args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--no-first-run'],
  });
  try {
    const ms = short ? 3_000 : 20_000;
    const quiet = await serve(5, 20);
    const idlePage = await browser.newPage({ viewport: { width: 1100, height: 720 } });
    await idlePage.goto(quiet.url);
    await idlePage.locator('.connection.live').waitFor();
    const counted = await startCounting(idlePage);
    quiet.send(false, ms);
    await idlePage.waitForTimeout(ms);
    const idle = await counted();
    await idlePage.close();
    await quiet.close();

    const busy = await serve(200, 5000);
    const page = await browser.newPage({ viewport: { width: 1100, height: 720 } });
    await page.goto(`${busy.url}#events`);
    await page.locator('.log .event').first().waitFor();
    const resting = await frames(page, short ? 60 : 300);
    busy.send(true, ms * 2);
    const listing = await frames(page, short ? 60 : 300);
    await page.goto(`${busy.url}#now`);
    await page.locator('.model').first().waitFor();
    const moving = await frames(page, short ? 60 : 300);
    await page.close();
    await busy.close();
    const core = (100 * idle.taskS) / (ms / 1000);
    return {
      part: 'page',
      sides: figures([
        { name: 'a frame, nothing moves', samplesUs: resting },
        { name: 'a frame, 5 000 events listed, readings change', samplesUs: listing },
        { name: 'a frame, 200 models, readings change', samplesUs: moving },
      ]),
      notes: [
        `Left open: ${core.toFixed(2)} % of a core, ${(idle.layouts / (ms / 1000)).toFixed(1)} layouts a second with ${1000 / READING_MS} readings a second (aim: under 1 %, ${core < 1 ? 'met' : 'not met'}).`,
        `Frames over 50 ms: ${[...listing, ...moving].filter((us) => us > 50_000).length} of ${listing.length + moving.length}; the longest took ${(quantile([...listing, ...moving], 1) / 1000).toFixed(0)} ms.`,
      ],
      details: { idle },
    };
  } finally {
    await browser.close();
  }
}

interface Counts {
  readonly taskS: number;
  readonly layouts: number;
}

/** Chromium counts while it is asked to: from now until the returned function is called. */
async function startCounting(page: Page): Promise<() => Promise<Counts>> {
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable');
  const read = async (): Promise<Counts> => {
    const { metrics } = await session.send('Performance.getMetrics');
    const of = (name: string): number => metrics.find((metric) => metric.name === name)?.value ?? Number.NaN;
    return { taskS: of('TaskDuration'), layouts: of('LayoutCount') };
  };
  const before = await read();
  return async () => {
    const after = await read();
    return { taskS: after.taskS - before.taskS, layouts: after.layouts - before.layouts };
  };
}

/** Microseconds from one frame to the next. */
function frames(page: Page, count: number): Promise<number[]> {
  // As text: this project's own library has no DOM.
  return page.evaluate(`new Promise((done) => {
    const samples = []; let last = performance.now();
    const next = (now) => { samples.push((now - last) * 1000); last = now;
      if (samples.length < ${count}) requestAnimationFrame(next); else done(samples.slice(1)); };
    requestAnimationFrame(next);
  })`);
}

interface Served {
  readonly url: string;
  /** A reading twice a second for so long; `changes`: each says something new. */
  send(changes: boolean, forMs: number): void;
  close(): Promise<void>;
}

async function serve(modelCount: number, eventCount: number): Promise<Served> {
  const first = stateOf(modelCount);
  const events = Array.from({ length: eventCount }, (_, index) => eventOf(index, eventCount, modelCount));
  const streams = new Set<ServerResponse>();
  const frame = (state: LandlordState): string => `event: state\ndata: ${JSON.stringify(state)}\n\n`;
  const server = createServer((request, response) => {
    const path = new URL(request.url ?? '/', 'http://localhost').pathname;
    if (path === '/api/stream') {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write(frame(first));
      streams.add(response);
      response.on('close', () => streams.delete(response));
    } else if (path === '/api/events') response.end(JSON.stringify(events));
    else if (path.startsWith('/api/')) response.writeHead(501).end('{}');
    else
      void readPageFile(PAGE_DIR, path).then((file) =>
        file === null
          ? response.writeHead(404).end()
          : response
              .writeHead(200, {
                'content-type': file.contentType,
                'content-security-policy': contentSecurityPolicy(null),
              })
              .end(file.content),
      );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address: AddressInfo | string | null = server.address();
  let timer: NodeJS.Timeout | undefined;
  return {
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}/`,
    send(changes, forMs) {
      let revision = 1;
      timer = setInterval(() => {
        revision += 1;
        const text = frame(changed(first, revision, changes));
        for (const stream of streams) stream.write(text);
        if (revision * READING_MS > forMs) clearInterval(timer);
      }, READING_MS);
    },
    close: () =>
      new Promise((resolve) => {
        clearInterval(timer);
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function changed(state: LandlordState, revision: number, changes: boolean): LandlordState {
  const at = new Date().toISOString();
  const moved = changes ? (revision % 7) * 0.2 * GB : 0;
  return {
    ...state,
    revision,
    at,
    devices: state.devices.map((device) => ({
      ...device,
      sampledAt: at,
      busyPercent: revision % 100,
      usedBytes: (device.usedBytes ?? 0) + moved,
      freeBytes: (device.freeBytes ?? 0) - moved,
    })),
    models: changes
      ? state.models.map((model, index) => ({ ...model, busy: (index + revision) % 3 === 0 }))
      : state.models,
  };
}

function stateOf(modelCount: number): LandlordState {
  const at = new Date().toISOString();
  return {
    schema: STATE_SCHEMA,
    revision: 1,
    at,
    devices: [
      {
        id: 'sim:0',
        kind: 'simulated',
        name: 'Card',
        totalBytes: 34 * GB,
        usedBytes: 12 * GB,
        freeBytes: 22 * GB,
        gttUsedBytes: null,
        busyPercent: 1,
        sampledAt: at,
        source: 'simulated',
        health: 'ok',
        capBytes: 30 * GB,
        bookedBytes: 10 * GB,
        floorBytes: 4 * GB,
        hardFloorBytes: 2 * GB,
        outstandingBytes: 0,
        drivesDisplay: true,
        evictionUnderWay: null,
        unified: false,
        notes: [],
      },
    ],
    tenants: [],
    models: Array.from({ length: modelCount }, (_, index) => modelOf(index)),
    lanes: [],
    agents: [],
    asleep: null,
    policy: {
      guards: 'on',
      guardsPausedUntil: null,
      floor: '4 GB',
      cap: '90 %',
      maxBig: 'fit',
      race: 'class',
      idleMs: 180_000,
      raceGraceMs: 1000,
    },
    backends: [],
    notices: [],
    restorable: [],
    version: 'bench',
  };
}

function modelOf(index: number): ModelState {
  return {
    id: `router/model-${String(index).padStart(3, '0')}`,
    backend: 'router',
    status: 'loaded',
    busy: false,
    big: true,
    pinned: false,
    batchOnly: false,
    deviceId: 'sim:0',
    predictedBytes: 2 * GB,
    measuredBytes: 2 * GB,
    lastUsedAt: null,
    pid: null,
    port: null,
    guarded: 'on',
    small: false,
    loadProgress: null,
    contextTokens: 8192,
    leavesAt: null,
    lastEviction: null,
  };
}

function eventOf(index: number, count: number, modelCount: number): LandlordEvent {
  return {
    id: index + 1,
    at: new Date(Date.now() - (count - index) * 20_000).toISOString(),
    kind: index % 2 === 0 ? 'evicted' : 'loaded',
    model: `router/model-${String(index % modelCount).padStart(3, '0')}`,
    reason: `Reason ${index}: 6.2 GB came back in 1.1 s.`,
    numbers: { freedBytes: 6.2 * GB },
  };
}
