/** The built page in real Chromium over a scenario; whatever it complains about is kept. */
import type { Browser, Page } from 'playwright-core';
import { type PageServer, startPageServer } from './page-server.ts';
import { loadState, type Scenario } from './states.ts';

export interface OpenPage {
  readonly page: Page;
  readonly server: PageServer;
  /** Errors of scripts and of the console, but for refused requests: those are part of some tests. */
  readonly complaints: string[];
  [Symbol.asyncDispose](): Promise<void>;
}

export interface PageView {
  readonly hash?: string;
  readonly width?: number;
  readonly height?: number;
  /** In place of the named state. */
  readonly scenario?: Scenario;
  readonly colorScheme?: 'light' | 'dark';
  /** Answers to questions by path, such as `history`. */
  readonly answers?: Readonly<Record<string, object>>;
}

export async function openPage(browser: Browser, name: string, view: PageView = {}): Promise<OpenPage> {
  const server = await startPageServer(view.scenario ?? loadState(name, Date.now()));
  for (const [path, body] of Object.entries(view.answers ?? {}))
    server.answer(`/api/${path}`, { status: 200, body });
  const context = await browser.newContext({
    viewport: { width: view.width ?? 1100, height: view.height ?? 720 },
    colorScheme: view.colorScheme ?? 'light',
    reducedMotion: 'reduce',
    locale: 'en-GB',
  });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
      complaints.push(message.text());
  });
  await page.goto(`${server.url}${view.hash ?? ''}`);
  await page.locator('.connection.live').waitFor();
  return {
    page,
    server,
    complaints,
    async [Symbol.asyncDispose]() {
      await context.close();
      await server.close();
    },
  };
}
