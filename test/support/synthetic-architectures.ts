export * from '../../build/models/synthetic-architectures.ts';
