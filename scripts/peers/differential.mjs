// Sends the same random requests to Wheelhouse and to the reference, and prints the answers that
// differ, one per group of similar differences. Usage: `differential.mjs PART [seed] [rounds]`.
import { register } from 'tsx/esm/api';
import { createRandom } from './differential/random.mjs';
import { createReport } from './differential/report.mjs';
import { startReference, startWheelhouse } from './servers.mjs';

register();
const parts = {
  bodies: async () => (await import('./differential/bodies.mjs')).bodyRounds,
  builtin: async () => (await import('./differential/builtin.mjs')).builtinRounds,
  custom: async () => (await import('./differential/custom.mjs')).customRounds,
  expressions: async () => (await import('./differential/expressions.mjs')).expressionRounds,
  reads: async () => (await import('./differential/reads.mjs')).readingRounds,
};
const [part = 'builtin', seedText, roundsText] = process.argv.slice(2);
if (!Object.hasOwn(parts, part)) {
  console.log(`differential.mjs: no part ${part}; parts: ${Object.keys(parts).join(', ')}`);
  process.exit(1);
}
const seed = Number(seedText ?? Date.now() % 1_000_000);
const rounds = Number(roundsText ?? 2000);

// Excludes plugins that other objects configure, because each server notices such objects at a
// different time.
const plugins = [
  'ServiceAccount',
  'MutatingAdmissionWebhook',
  'ValidatingAdmissionWebhook',
  'ValidatingAdmissionPolicy',
];
const isPolicy = (plugin) => plugin === 'ValidatingAdmissionPolicy';
const disabled = part === 'expressions' ? plugins.filter((name) => !isPolicy(name)) : plugins;
const flags = [`--disable-admission-plugins=${disabled.join(',')}`];
if (part === 'bodies') flags.push('--feature-gates=CBORServingAndStorage=true');
const reference = await startReference({ flags });
if (reference === undefined) process.exit(0);
const both = [reference, await startWheelhouse({ flags })];
console.log(`${part}, seed ${seed}, ${rounds} rounds`);
const { send, compared, finish } = createReport(both);
try {
  const roundsOf = await parts[part]();
  const play = await roundsOf({ both, random: createRandom(seed), send, compared });
  for (let round = 0; round < rounds; round++) await play(round);
} finally {
  for (const server of both) await server.stop();
}
finish();
