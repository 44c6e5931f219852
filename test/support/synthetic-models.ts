export * from '../../build/models/synthetic-models.ts';
