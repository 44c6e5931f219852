/** A program that owns an engine and says its pid; run to be killed. */
import { ChildEngineHost } from '../../electron/core/engine/child-host.ts';

const host = new ChildEngineHost({ gpu: 'cpu', threads: 1 });
const started = await host.start();
process.stdout.write(`${started.ok ? started.value.pid : started.error.message}\n`);
setInterval(() => {}, 1000);
