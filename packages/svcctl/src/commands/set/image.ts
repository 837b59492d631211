import type { JsonObject } from '@wheelhouse/machinery';
import { dryRunOf } from '../../apply/writes.ts';
import type { Command } from '../../command.ts';
import { describeErrors } from '../../errors.ts';
import { CliError } from '../../io.ts';
import { hasManifests } from '../../manifests.ts';
import type { Session } from '../../session.ts';
import { changeContainers, splitPairs, withPodSpec } from '../../set/pod-spec.ts';
import { checkSetFlags, setEach, setFlags } from '../../set/set-objects.ts';

export const imageCommand: Command = {
  name: 'image',
  completes: 'objects',
  summary: 'Update the image of a pod template',
  usage: '(-f FILENAME | TYPE NAME) CONTAINER_NAME_1=CONTAINER_IMAGE_1 ...',
  flags: setFlags,
  async run(session, args) {
    const { words, images } = imagesOf(args);
    const problems = problemsOf(session, { words, images });
    if (problems.length > 0) {
      session.io.err(describeErrors(problems));
      return 1;
    }
    const absent: CliError[] = [];
    const exitCode = await setEach(session, words, {
      done: 'image updated',
      doing: 'failed to patch image update to pod template:',
      change: (one) =>
        withPodSpec(one, (spec) => withImages(spec, images, (error) => absent.push(error))),
    });
    if (absent.length === 0) return exitCode;
    session.io.err(describeErrors(absent));
    return 1;
  },
};

function imagesOf(args: readonly string[]): {
  readonly words: readonly string[];
  readonly images: ReadonlyMap<string, string>;
} {
  const { words, pairs } = splitPairs(args, 'image');
  const invalid = pairs.filter((pair) => pair.indexOf('=') <= 0);
  if (invalid.length > 0) throw new CliError(`invalid image format: ${invalid.join(', ')}`);
  const split = (pair: string) => {
    const equals = pair.indexOf('=');
    return [pair.slice(0, equals), pair.slice(equals + 1)] as const;
  };
  return { words, images: new Map(pairs.map(split)) };
}

function problemsOf(
  session: Session,
  of: { readonly words: readonly string[]; readonly images: ReadonlyMap<string, string> },
): readonly CliError[] {
  const { words, images } = of;
  checkSetFlags(session, dryRunOf(session));
  const named = words.length > 0 || hasManifests(session);
  return [
    !named && 'one or more resources must be specified as <resource> <name> or <resource>/<name>',
    images.size === 0 && 'at least one image update is required',
    images.size > 1 &&
      images.has('*') &&
      'all containers are already specified by *, but saw more than one ' +
        'container_name=container_image pairs',
  ].flatMap((one) => (one === false ? [] : [new CliError(one)]));
}

function withImages(
  before: JsonObject,
  images: ReadonlyMap<string, string>,
  onAbsent: (error: CliError) => void,
): JsonObject {
  let after = before;
  for (const [name, image] of images) {
    const { spec, found } = changeContainers(after, name === '*' ? '*' : name, (container) => ({
      ...container,
      image,
    }));
    if (!found) {
      onAbsent(new CliError(`error: unable to find container named ${JSON.stringify(name)}`));
    }
    after = spec;
  }
  return after;
}
