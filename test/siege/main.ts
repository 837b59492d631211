import { parseArgs } from 'node:util';
import type { SiegeFigures, SiegePart } from './part.ts';
import { siegeParts } from './parts.ts';

/** An argument is wrong; the message says which. */
class UsageError extends Error {}

const values = readFlags();

function readFlags() {
  try {
    return parseArgs({
      options: {
        part: { type: 'string', multiple: true },
        rounds: { type: 'string' },
        seed: { type: 'string' },
        seconds: { type: 'string' },
        help: { type: 'boolean' },
      },
    }).values;
  } catch (error) {
    return fail(new UsageError(error instanceof Error ? error.message : String(error)));
  }
}

/** Reports a wrong argument in one line. */
function fail(error: unknown): never {
  if (!(error instanceof UsageError)) throw error;
  console.error(`error: ${error.message}; see --help`);
  process.exit(1);
}

function help(): string {
  const parts = siegeParts.map(
    ({ name, summary, defaultRounds }) =>
      `  ${name.padEnd(14)}${summary} Rounds: ${defaultRounds}.`,
  );
  return [
    'usage: npm run siege -- [flags]',
    '',
    '  --part=NAME     runs this part alone; may be repeated. All parts but the soak when absent',
    '  --rounds=N      length of each part, in rounds of its own',
    '  --seconds=N     ends each part after the round in which this time has passed',
    '  --seed=N        repeats a run; from the clock when absent',
    '',
    'parts:',
    ...parts,
  ].join('\n');
}

function numberOf(flag: 'rounds' | 'seed' | 'seconds'): number | undefined {
  const text = values[flag];
  if (text === undefined) return undefined;
  if (!/^\d{1,15}$/.test(text)) throw new UsageError(`--${flag}=${text} is not a whole number`);
  return Number(text);
}

function chosenParts(): readonly SiegePart[] {
  const { part: names } = values;
  if (names === undefined) return siegeParts.filter(({ name }) => name !== 'soak');
  return names.map((name) => {
    const siegePart = siegeParts.find((siegePart) => siegePart.name === name);
    if (siegePart === undefined) throw new UsageError(`--part=${name} names no part`);
    return siegePart;
  });
}

function show(name: string, figures: SiegeFigures): void {
  for (const [figure, value] of Object.entries(figures)) {
    console.log(`${name.padEnd(14)}${figure.padEnd(26)}${value}`);
  }
}

/**
 * `npm run siege`: runs parts of the siege one after the other and prints their measurements. Exits
 * with status 1 and prints the seed if a guarantee does not hold.
 */
async function siege(): Promise<boolean> {
  const seed = numberOf('seed') ?? Date.now() % 1_000_000;
  const seconds = numberOf('seconds');
  let hasFailed = false;
  console.log(`seed ${seed}`);
  for (const part of chosenParts()) {
    const { name } = part;
    const log = (line: string) => console.error(`${name}: ${line}`);
    // With its own time limit, a part runs until the limit.
    const rounds = numberOf('rounds') ?? (seconds === undefined ? part.defaultRounds : 1e9);
    const began = performance.now();
    try {
      const limit = seconds === undefined ? {} : { seconds };
      const figures = await part.run({ seed, rounds, log, ...limit });
      const took = Math.round((performance.now() - began) / 100) / 10;
      show(name, { ...figures, tookSeconds: took });
    } catch (error) {
      hasFailed = true;
      console.error(`${name} FAILED with --seed=${seed}:`, error);
    }
  }
  return !hasFailed;
}

if (values.help === true) console.log(help());
else process.exitCode = (await siege().catch(fail)) ? 0 : 1;
