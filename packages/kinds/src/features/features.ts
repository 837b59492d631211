import { currentMinor } from '../rules/life.ts';
import { type GateEntry, gateTable } from './feature-gate-table.ts';

export type GateName = keyof typeof gateTable;

/** Which features are on. */
export interface Features {
  enabled(name: GateName): boolean;
}

/** The features of the current release when no gate is set. */
export const defaultFeatures: Features = {
  enabled(name) {
    const history: readonly GateEntry[] = gateTable[name];
    return history.findLast(({ since }) => since <= currentMinor)?.default ?? false;
  },
};
