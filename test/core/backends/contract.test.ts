import { contract } from './contract.ts';
import { SUBJECTS } from './subjects.ts';

for (const subject of SUBJECTS) contract(subject);
