import { exhaustionPart } from './exhaustion.ts';
import { fuzzPart } from './fuzz-part.ts';
import { growthPart } from './growth.ts';
import { historiesPart } from './histories/histories.ts';
import { identityPart } from './identity.ts';
import type { SiegePart } from './part.ts';
import { protocolsPart } from './protocols.ts';
import { retentionPart } from './retention.ts';
import { rulesPart } from './rules.ts';
import { simulationPart } from './simulation/simulation-part.ts';
import { soakPart } from './soak/soak.ts';
import { stepsPart } from './steps.ts';

/** All parts, in the order in which a run without `--part` takes them. */
export const siegeParts: readonly SiegePart[] = [
  simulationPart,
  fuzzPart,
  growthPart,
  identityPart,
  protocolsPart,
  historiesPart,
  exhaustionPart,
  stepsPart,
  rulesPart,
  retentionPart,
  soakPart,
];
