import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TINY_SHAPE } from '../support/gguf.ts';
import { type LandlordBench, startLandlordBench } from '../support/landlord-runtime.ts';
import { freePort } from '../support/llama-server.ts';
import { startRouter, type TestRouter, until } from '../support/router.ts';

/**
 * A server that answers as ComfyUI's server.py does, in a process that looks like it: python running
 * main.py in a folder of its name. Its memory on the card is the simulated card's.
 */
const SERVER = `
import http.server, json, sys
state = {"working": False, "frees": 0}
class Comfy(http.server.BaseHTTPRequestHandler):
    def log_message(self, *a): pass
    def send(self, value, status=200):
        body = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self):
        if self.path == "/system_stats":
            self.send({"system": {"os": "posix", "comfyui_version": "0.3.75", "python_version": "3.12"}, "devices": [{"name": "cuda:0", "type": "cuda", "vram_total": 25769803776, "vram_free": 12, "torch_vram_total": 9, "torch_vram_free": 1}]})
        elif self.path == "/queue":
            self.send({"queue_running": [[0, "id"]] if state["working"] else [], "queue_pending": []})
        elif self.path == "/asked": self.send(state["frees"])
        else: self.send({}, 404)
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        if self.path == "/free" and body == {"unload_models": True, "free_memory": True}:
            state["frees"] += 1
            self.send(None)
        elif self.path == "/work":
            state["working"] = body["working"]
            self.send(None)
        else: self.send({}, 404)
http.server.HTTPServer(("127.0.0.1", int(sys.argv[sys.argv.index("--port") + 1])), Comfy).serve_forever()
`;

const GB = 1_000_000_000;
const root = mkdtempSync(join(tmpdir(), 'landlord-comfy-'));
let comfy: ChildProcess;
let comfyUrl = '';
let router: TestRouter;
let landlord: LandlordBench;

beforeAll(async () => {
  process.env.VRAM_LANDLORD_GATE_DIR = join(root, 'gates');
  const folder = join(root, 'ComfyUI');
  mkdirSync(folder);
  writeFileSync(join(folder, 'main.py'), SERVER);
  const port = await freePort();
  comfyUrl = `http://127.0.0.1:${port}`;
  comfy = spawn('python3', ['main.py', '--port', String(port)], { cwd: folder, stdio: 'ignore' });
  await until(
    async () => (await fetch(`${comfyUrl}/queue`).catch(() => null)) !== null,
    20_000,
    'the server',
  );
  router = await startRouter({ models: { talk: { shape: TINY_SHAPE }, more: { shape: TINY_SHAPE } } });
  landlord = await startLandlordBench({
    routerUrl: router.url,
    routerPid: () => router.pid(),
    totalBytes: 24 * GB,
    footprints: { talk: { bytes: 6 * GB, rampMs: 0 }, more: { bytes: 8 * GB, rampMs: 0 } },
    config: `comfyui: ["${comfyUrl}"]\nidle: 1s`,
    desktop: [{ name: 'python3', bytes: 9 * GB, type: 'C', pid: comfy.pid ?? 0 }],
  });
  await landlord.seen();
});

afterAll(async () => {
  await landlord[Symbol.asyncDispose]();
  await router[Symbol.asyncDispose]();
  comfy.kill('SIGKILL');
  rmSync(root, { recursive: true, force: true });
});

const asked = async (): Promise<number> => Number(await (await fetch(`${comfyUrl}/asked`)).text());
const hold = (bytes: number): void =>
  landlord.card.set({ name: 'python3', bytes, type: 'C', pid: comfy.pid ?? 0 });

/** As ComfyUI does: its memory is back a moment after it was asked. */
async function giveBackOnceAsked(from: number): Promise<void> {
  await until(async () => (await asked()) > from, 30_000, 'it to be asked');
  hold(0.4 * GB);
}

describe('ComfyUI', () => {
  it('is known by its process, and named as what it is', async () => {
    await until(
      () => landlord.runtime.state().tenants.some((one) => one.kind === 'foreign' && one.name === 'ComfyUI'),
      20_000,
      'ComfyUI among the tenants',
    );
    const tenant = landlord.runtime.state().tenants.find((one) => one.name === 'ComfyUI');
    expect(tenant).toMatchObject({ measuredBytes: 9 * GB, pids: [comfy.pid] });
  });

  it('that works on nothing is asked before a model is evicted', async () => {
    await landlord.must({ type: 'load', model: 'talk', force: false });
    await until(() => landlord.model('router/talk').busy === false, 20_000, 'it to be idle');
    // 9 of ComfyUI and 6 of a model are there, 8 more do not fit above the floor.
    const from = landlord.events.length;
    const before = await asked();
    const [, done] = await Promise.all([
      giveBackOnceAsked(before),
      landlord.runtime.command({ type: 'load', model: 'more', force: false }),
    ]);
    expect(done).toMatchObject({ ok: true });
    expect(landlord.model('router/talk').status).toBe('loaded');
    const told = await landlord.event('tenant_asked', { from });
    expect(told.reason).toMatch(
      /ComfyUI was asked to free its memory, since router\/more was asked for: 8\.6 GB came back/,
    );
    expect(landlord.events.slice(from).filter((one) => one.kind === 'evicted')).toEqual([]);
  });

  it.each([
    ['below the floor', 16],
    ['below the hard floor', 17.2],
  ])('%s it is asked, and the idle model stays', async (_, growsToGb) => {
    await landlord.restart();
    await landlord.seen();
    if (landlord.model('router/more').status === 'loaded')
      await landlord.must({ type: 'unload', model: 'more', force: true });
    hold(4 * GB);
    await landlord.must({ type: 'load', model: 'talk', force: false });
    await until(() => landlord.model('router/talk').busy === false, 20_000, 'it to be idle');
    await until(
      () => landlord.runtime.state().tenants.some((one) => one.name === 'ComfyUI'),
      20_000,
      'ComfyUI among the tenants',
    );
    const from = landlord.events.length;
    const before = await asked();
    hold(growsToGb * GB);
    await giveBackOnceAsked(before);
    const told = await landlord.event('tenant_asked', { from });
    expect(told.reason).toMatch(
      /ComfyUI was asked to free its memory, since the desktop is short of memory: \d+\.\d GB came back/,
    );
    expect(landlord.model('router/talk').status).toBe('loaded');
    expect(landlord.events.slice(from).filter((one) => one.kind === 'evicted')).toEqual([]);
  });

  it('that makes a picture is left alone below the floor: an idle model goes', async () => {
    await landlord.restart();
    await landlord.seen();
    hold(4 * GB);
    await landlord.must({ type: 'load', model: 'talk', force: false });
    await until(() => landlord.model('router/talk').busy === false, 20_000, 'it to be idle');
    await fetch(`${comfyUrl}/work`, { method: 'POST', body: '{"working":true}' });
    const from = landlord.events.length;
    const before = await asked();
    hold(16 * GB);
    const evicted = await landlord.event('evicted', { from, limitMs: 60_000 });
    expect(evicted.model).toBe('router/talk');
    expect(await asked()).toBe(before);
    await fetch(`${comfyUrl}/work`, { method: 'POST', body: '{"working":false}' });
    hold(0.4 * GB);
  });

  it('its growth is named when it threatens the floor', async () => {
    hold(0.4 * GB);
    await landlord.must({ type: 'load', model: 'talk', force: false });
    const from = landlord.events.length;
    await fetch(`${comfyUrl}/work`, { method: 'POST', body: '{"working":true}' });
    await until(
      () =>
        landlord.runtime
          .state()
          .tenants.some((one) => one.name === 'ComfyUI' && one.measuredBytes === 0.4 * GB),
      20_000,
      'its small size to be seen',
    );
    hold(17.5 * GB);
    const threatened = await landlord.event('floor_threatened', { from });
    expect(threatened.reason).toMatch(/ComfyUI grew by \d+\.\d GB/);
  });
});
