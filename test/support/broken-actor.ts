/** An actor of the showdown whose root follows HOME, as it must not. */
import { createGate } from '../../electron/core/gate/gate.ts';
import { act } from '../../electron/core/gate/showdown-act.ts';

act(
  createGate({
    passwdHome: () => process.env.HOME ?? '/tmp/no-home-at-all',
    machineWideRoot: '/nonexistent',
  }),
  process.argv.slice(2),
);
