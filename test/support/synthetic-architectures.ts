export * from '../../build/models/synthetic-architectures.ts';
export * from '../../build/models/synthetic-state-models.ts';
