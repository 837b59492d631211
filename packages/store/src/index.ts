/** Versioned key-value stores with watches, encryption, and backup. */

export {
  BackupError,
  type BackupSummary,
  fileBytes,
  readBackup,
  restoredRevision,
  writeBackupFile,
} from './backup/backup-file.ts';
export { writeBackup } from './backup/writer.ts';
export { type Compactor, startCompactor } from './compactor.ts';
export {
  type Checkpoint,
  type CheckpointedStore,
  type PutRequest,
  type Revision,
  type Store,
  type StoredRecord,
  StoreError,
  type StoreEvent,
  type StoreWatch,
  shownKey,
  unchangedOperations,
  type WriteResult,
} from './contract.ts';
export { checkNotLocked } from './embedded/directory-lock.ts';
export { openEmbeddedStore, type StoreAlarm } from './embedded/embedded-store.ts';
export { createRestoredStore } from './embedded/restored-store.ts';
export { encryptionFormat, loadEncryptionConfiguration } from './encryption/configuration.ts';
export {
  type ChooseTransformer,
  chooseTransformers,
  type EncryptedStore,
  encryptedStore,
} from './encryption/encrypted-store.ts';
export { type KmsProviders, openKmsProviders } from './encryption/kms-providers.ts';
export type { KmsMeter } from './encryption/kms-service.ts';
export type { TransformationObserver } from './encryption/transformer.ts';
export { addressOf } from './etcd/client.ts';
export { EtcdClaims, startEtcdCompactor } from './etcd/coordination.ts';
export { CallError, statusName } from './etcd/errors.ts';
export { type EtcdStore, openEtcdStore } from './etcd/etcd-store.ts';
export { callUnary, GrpcChannel } from './etcd/grpc-channel.ts';
export {
  boolean,
  bytes,
  chosen,
  fixed64,
  integer,
  many,
  message,
  nested,
  one,
  sent,
  text,
} from './etcd/message.ts';
export type { Method } from './etcd/protocol.ts';
export { loadBackupWriter, loadEmbeddedStore, loadMemoryStore } from './lazy.ts';
export { convertedStore, mappedStore } from './mapped-store.ts';
export {
  type ContinuePoint,
  decodeContinue,
  encodeContinue,
  inconsistentRevision,
  parseResourceVersion,
} from './resource-version.ts';
export {
  type ListObserver,
  meteredStore,
  type Route,
  routedStore,
  type StoreObserver,
  type StoreOperation,
} from './wrapped-stores.ts';
