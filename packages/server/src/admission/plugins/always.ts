import type { AdmissionPlugin } from '../chain.ts';
import { refusal } from '../tools.ts';

/** Admits everything, as no plugin at all would. */
export const alwaysAdmit: AdmissionPlugin = { name: 'AlwaysAdmit' };

/** Refuses every write, for tests. */
export const alwaysDeny: AdmissionPlugin = {
  name: 'AlwaysDeny',
  mutate(call) {
    throw refusal(call, 'admission control is denying all modifications');
  },
};
