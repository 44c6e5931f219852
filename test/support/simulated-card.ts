export { SimulatedCard, type SimulatedFootprint } from '../../electron/core/demo/simulated-card.ts';
