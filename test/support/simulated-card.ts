export {
  SimulatedCard,
  type SimulatedFootprint,
  type SimulatedProgram,
} from '../../electron/core/demo/simulated-card.ts';
