import { dialectNames, dialectOf } from '../../dialect.ts';
import type { Command } from '../command.ts';
import { convertObject } from '../convert.ts';
import { CliError } from '../io.ts';
import { loadManifests, manifestFlags } from '../manifests.ts';
import type { Session } from '../session.ts';

export const convertCommand: Command = {
  name: 'convert',
  summary: 'Write objects from files in another version',
  usage: '-f FILENAME',
  flags: [
    ...manifestFlags,
    { name: 'output-version', type: 'text', help: 'apiVersion to write, of the same group' },
    { name: 'output', short: 'o', type: 'text', help: 'yaml (default) or json' },
  ],
  async run(session) {
    const to = session.flags.text('output') ?? 'yaml';
    if (to !== 'yaml' && to !== 'json') throw new CliError("--output must be 'yaml' or 'json'");
    const outputVersion = session.flags.text('output-version');
    const texts: string[] = [];
    for (const { object } of await loadManifests(session)) {
      const bytes = Buffer.from(JSON.stringify(object));
      texts.push(await converted(bytes, { to, outputVersion }));
    }
    print(session, texts, to);
    return 0;
  },
};

/** Files are of one dialect or the other: the one whose group the object names is taken. */
async function converted(
  bytes: Buffer,
  options: { to: 'yaml' | 'json'; outputVersion: string | undefined },
): Promise<string> {
  const { to, outputVersion } = options;
  const version = outputVersion === undefined ? {} : { outputVersion };
  let failure: unknown;
  for (const name of dialectNames) {
    try {
      const out = await convertObject(bytes, { dialect: dialectOf(name), to, ...version });
      return out.toString();
    } catch (error) {
      failure ??= error;
    }
  }
  throw failure;
}

function print(session: Session, texts: readonly string[], to: 'yaml' | 'json'): void {
  session.io.out(to === 'yaml' ? texts.join('---\n') : texts.map((text) => `${text}\n`).join(''));
}
