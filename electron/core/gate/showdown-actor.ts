/** A process of the showdown: `node showdown-actor.ts URL SESSION CLASS`. */
import { createGate } from './gate.ts';
import { act } from './showdown-act.ts';

act(createGate(), process.argv.slice(2));
