import { createReadStream, createWriteStream } from 'node:fs';
import { lstat, mkdir, readdir, readlink, stat } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { cut, type JsonObject } from '@wheelhouse/machinery';
import type { Command } from '../../command.ts';
import { CliError, CommandExit } from '../../io.ts';
import { isWithin } from '../../local-path.ts';
import { nameOf, namespaceOf } from '../../objects.ts';
import { targetPath } from '../../selection.ts';
import type { Session } from '../../session.ts';
import { connectStreams } from '../../streams/container-stream.ts';
import { containerFlag, containerName, streamPath } from '../../streams/pods.ts';
import { readTar, tarEnd, tarHeader, tarPadding } from '../../streams/tar.ts';
import { createWriter } from './exec.ts';

/**
 * Copies between the host and a container through its `tar`. `--retries` resumes an interrupted
 * copy from a container.
 */
export const cpCommand: Command = {
  name: 'cp',
  summary: 'Copy files and directories to and from containers',
  usage: 'SOURCE [[NAMESPACE/]POD:]DESTINATION',
  flags: [
    containerFlag,
    { name: 'no-preserve', type: 'boolean', help: 'Do not preserve ownership and permissions' },
    {
      name: 'retries',
      type: 'integer',
      help: 'Times to resume an interrupted copy from a container; -1 for no limit',
    },
  ],
  async run(session, args) {
    const [source, target, ...more] = args;
    if (source === undefined || target === undefined || more.length > 0) {
      throw new CliError('source and destination are required');
    }
    const [from, to] = [parseFileSpec(source), parseFileSpec(target)];
    if (from.pod !== '' && to.pod !== '') {
      throw new CliError('one of src or dest must be a local file specification');
    }
    if (from.file === '' || to.file === '') throw new CliError('filepath can not be empty');
    if (from.pod !== '') {
      await copyFrom(await resolveContainer(session, from), session.path(to.file));
    } else if (to.pod !== '') {
      const local = session.path(from.file);
      if ((await stat(local).catch(() => undefined)) === undefined) {
        throw new CliError(`${from.file} doesn't exist in local filesystem`);
      }
      await copyTo(await resolveContainer(session, to), local);
    } else {
      throw new CliError('one of src or dest must be a remote file specification');
    }
    return 0;
  },
};

/** A local file, or a file in a Pod. */
interface FileSpec {
  readonly namespace: string;
  readonly pod: string;
  readonly file: string;
}

function parseFileSpec(text: string): FileSpec {
  const [place, file] = cut(text, ':');
  if (file === undefined) return { namespace: '', pod: '', file: text };
  const words = place.split('/');
  const [pod = '', namespace = ''] = words.reverse();
  if (pod === '' || words.length > 2) {
    throw new CliError('filespec must match the canonical format: [[namespace/]pod:]file/path');
  }
  return { namespace, pod, file };
}

/** A file in a container. */
interface ContainerFile {
  readonly session: Session;
  readonly pod: JsonObject;
  readonly container: string;
  readonly file: string;
}

async function resolveContainer(session: Session, place: FileSpec): Promise<ContainerFile> {
  const resource = await session.resourceOfKind('Pod');
  const namespace = place.namespace || session.namespace;
  const target = { resource, namespace, name: place.pod };
  const pod = await session.client.get(targetPath(target));
  return { session, pod, container: await containerName(session, pod), file: place.file };
}

/** Runs a program in the container. Rejects like `connectStreams`. */
async function runInContainer(
  { session, pod, container }: ContainerFile,
  command: readonly string[],
  streams: { readonly input?: Readable; readonly output: (bytes: Buffer) => Promise<void> },
): Promise<void> {
  const requestPath = await streamPath(session, pod, {
    subresource: 'exec',
    query: [
      ['container', container],
      ...command.map((argument) => ['command', argument] as const),
      ...(streams.input === undefined ? [] : [['stdin', 'true'] as const]),
      ['stdout', 'true'],
      ['stderr', 'true'],
    ],
  });
  await connectStreams(session, requestPath, {
    ...streams,
    error: createWriter(session.io, 'error'),
  });
}

async function copyFrom(from: ContainerFile, target: string): Promise<void> {
  // Writes wait for the reader, and fail once it has stopped.
  const archive = new TransformStream<Buffer, Buffer>();
  const writer = archive.writable.getWriter();
  const pack = async (): Promise<void> => {
    try {
      await packInContainer(from, (bytes) => writer.write(bytes));
    } finally {
      // Fails if the reader has stopped.
      await writer.close().catch(() => {});
    }
  };
  const [packFile, unpacked] = await Promise.allSettled([
    pack(),
    unpack(from, archive.readable, target),
  ]);
  // A failed program explains a truncated archive, so its error takes precedence.
  const failures = [packFile, unpacked].filter((result) => result.status === 'rejected');
  const first = failures.find(({ reason }) => reason instanceof CommandExit) ?? failures.at(-1);
  if (first !== undefined) throw first.reason;
}

/**
 * Packs a file in the container. With `--retries`, resumes an interrupted archive. Rejects like
 * `connectStreams`.
 */
async function packInContainer(
  from: ContainerFile,
  write: (bytes: Buffer) => Promise<void>,
): Promise<void> {
  const { io, flags } = from.session;
  const retries = flags.integer('retries') ?? 0;
  let bytesRead = 0;
  let isReaderGone = false;
  const output = async (bytes: Buffer): Promise<void> => {
    try {
      await write(bytes);
    } catch (error) {
      isReaderGone = true;
      throw error;
    }
    bytesRead += bytes.length;
  };
  for (let retry = 0; ; retry += 1) {
    try {
      await runInContainer(from, packCommand(from.file, { retries, bytesRead }), { output });
      return;
    } catch (error) {
      const isLost = error instanceof CliError && !(error instanceof CommandExit);
      if (!isLost || isReaderGone || retries === 0) throw error;
      if (retry === retries) {
        io.out(`Dropping out copy after ${retry} retries\n`);
        throw error;
      }
      io.out(`Resuming copy at ${bytesRead} bytes, retry ${retry + 1}/${retries}\n`);
    }
  }
}

/** The command that packs a file; with retries, skips the bytes that were already read. */
function packCommand(
  file: string,
  { retries, bytesRead }: { readonly retries: number; readonly bytesRead: number },
): readonly string[] {
  if (retries === 0) return ['tar', 'cf', '-', file];
  const quoted = `'${file.replaceAll("'", "'\\''")}'`;
  return ['sh', '-c', `tar cf - ${quoted} | tail -c+${bytesRead + 1}`];
}

async function unpack(
  from: ContainerFile,
  archive: AsyncIterable<Buffer>,
  target: string,
): Promise<void> {
  const { io } = from.session;
  const prefix = path.posix.normalize(`/${from.file}`).slice(1).replace(/\/$/, '');
  const isFolder = (await stat(target).catch(() => undefined))?.isDirectory() === true;
  let isHintNeeded = true;
  for await (const { entry, content } of readTar(archive)) {
    const name = entry.name.replace(/^\.\//, '').replace(/\/$/, '');
    // Reject an archive with other files, which someone may have tampered with.
    if (!`${name}/`.startsWith(prefix === '' ? '' : `${prefix}/`)) {
      throw new CliError('tar contents corrupted');
    }
    const rest = name.slice(prefix.length).replace(/^\//, '');
    const isOnlyFile = rest === '' && entry.type === 'file';
    const destination =
      isOnlyFile && isFolder
        ? path.join(target, path.posix.basename(prefix))
        : path.join(target, rest);
    if (!isWithin(target, destination)) {
      io.err(
        `warning: file ${JSON.stringify(destination)} is outside target destination, skipping\n`,
      );
    } else if (entry.type === 'symlink') {
      const arrow = `${JSON.stringify(destination)} -> ${JSON.stringify(entry.link)}`;
      io.err(`warning: skipping symlink: ${arrow}${isHintNeeded ? execHint(from) : ''}\n`);
      isHintNeeded = false;
    } else if (entry.type === 'directory') {
      await mkdir(destination, { recursive: true });
    } else if (entry.type === 'file') {
      await mkdir(path.dirname(destination), { recursive: true });
      await pipeline(content, createWriteStream(destination));
    }
  }
}

function execHint({ pod, file }: ContainerFile): string {
  const words = [namespaceOf(pod), nameOf(pod), file].map((word) => JSON.stringify(word));
  const [namespace, name, place] = words;
  return ` (consider using "svcctl exec -n ${namespace} ${name} -- tar cf - ${place} | tar xf -")`;
}

async function copyTo(to: ContainerFile, local: string): Promise<void> {
  const { session } = to;
  const destination = (await isRemoteFolder(to))
    ? path.posix.join(to.file, path.basename(local))
    : path.posix.normalize(to.file);
  const tarFlags = session.flags.boolean('no-preserve')
    ? ['--no-same-permissions', '--no-same-owner']
    : [];
  const folder = path.posix.dirname(destination);
  const archive = Readable.from(packFile({ local, name: path.posix.basename(destination) }));
  try {
    await runInContainer(to, ['tar', ...tarFlags, '-xmf', '-', '-C', folder], {
      input: archive,
      output: createWriter(session.io, 'output'),
    });
  } catch (error) {
    throw archive.errored ?? error;
  }
}

async function isRemoteFolder(to: ContainerFile): Promise<boolean> {
  try {
    const discard = async () => {};
    await runInContainer(to, ['test', '-d', to.file], { output: discard });
    return true;
  } catch (error) {
    // The container may have tar without test; what prevents tar, too, is reported by it.
    if (to.session.io.signal.aborted) throw error;
    return false;
  }
}

/** A local file and its name in the archive. */
interface PackedFile {
  readonly local: string;
  readonly name: string;
}

async function* packFile(file: PackedFile): AsyncGenerator<Buffer> {
  yield* packEntries(file);
  yield tarEnd;
}

/** Packs a file, a link, or a folder with its contents. Does not follow links. */
async function* packEntries({ local, name }: PackedFile): AsyncGenerator<Buffer> {
  const stats = await lstat(local);
  const entry = { name, mode: stats.mode & 0o7777, mtime: stats.mtimeMs / 1000, size: 0, link: '' };
  if (stats.isDirectory()) {
    yield tarHeader({ ...entry, type: 'directory' });
    for (const child of (await readdir(local)).sort()) {
      yield* packEntries({ local: path.join(local, child), name: `${name}/${child}` });
    }
  } else if (stats.isSymbolicLink()) {
    yield tarHeader({ ...entry, type: 'symlink', link: await readlink(local) });
  } else if (stats.isFile()) {
    yield tarHeader({ ...entry, type: 'file', size: stats.size });
    yield* readContent(local, stats.size);
    yield tarPadding(stats.size);
  }
}

/** Reads exactly `size` bytes, so that a growing file does not shift the following entries. */
async function* readContent(local: string, size: number): AsyncGenerator<Buffer> {
  if (size === 0) return;
  let missing = size;
  const content: AsyncIterable<Buffer> = createReadStream(local, { end: size - 1 });
  for await (const chunk of content) {
    missing -= chunk.length;
    yield chunk;
  }
  if (missing > 0) throw new CliError(`${local} shrank while it was read`);
}
