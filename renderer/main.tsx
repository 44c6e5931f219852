import { createRoot } from 'react-dom/client';
import { createActions } from './actions.ts';
import { browserWorld, createApi } from './api.ts';
import { App } from './app.tsx';
import { createHttpAsk, createIpcAsk } from './ask.ts';
import { createClock, ModelProvider } from './components/context.ts';
import { bridgeOf, createIpcApi, createIpcWorld, onRuntimeBack } from './ipc-api.ts';
import { createReplica } from './store.ts';
import './styles.css';

const bridge = bridgeOf(globalThis);
const world = bridge === null ? browserWorld : createIpcWorld(bridge, browserWorld);
const replica = createReplica(world);
const actions = createActions(
  bridge === null ? createApi((...request) => fetch(...request)) : createIpcApi(bridge),
);
const ask = bridge === null ? createHttpAsk((...request) => fetch(...request)) : createIpcAsk(bridge);
const place = document.getElementById('page');
if (place !== null) {
  replica.start();
  if (bridge !== null) onRuntimeBack(bridge, () => replica.retryNow());
  // A page that comes back from the background, or a machine from suspend, need not wait for its turn.
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden) replica.retryNow();
  });
  globalThis.addEventListener('online', () => replica.retryNow());
  createRoot(place).render(
    <ModelProvider
      value={{ replica: replica.store, actions, ask, readEvents: world.fetchEvents, clock: createClock() }}
    >
      <App />
    </ModelProvider>,
  );
}
