"""The settings of Apache's bookies that mean nothing here, and why. Data.

The names are those of ``conf/bk_server.conf`` and of ``ServerConfiguration`` with its base classes, as of BookKeeper
4.18. Those that are translated or looked at are in :mod:`bookkeeper.admin.config.apache_settings`.
"""

from __future__ import annotations

from typing import Final

_JVM: Final = "memory and threads of the JVM; a bookie here has one loop and bounds its memory in bytes"
_JOURNAL: Final = (
    "the journal here clocks itself: each group is synced before it is acknowledged, and its files are recycled"
)
_CACHES: Final = "a part of Apache's storage that there is not here; [storage] has what bounds memory"
_ROCKSDB: Final = "there is no RocksDB here; the index is kept in segments"
_GARBAGE: Final = "garbage passes and compaction have limits of their own ([storage], garbage_interval_s)"
_DISK: Final = "a disk counts as full when less than storage.reserve_bytes is free, not by a share"
_SOCKETS: Final = "set for every connection, or left to the system"
_METADATA: Final = "what the cluster itself says (its LAYOUT and the version of each ledger) is used"
_CLIENT: Final = "a setting of clients here (ClientConfig), also for repairs"
_PLACEMENT: Final = "clients choose bookies: ClientConfig has placement, racks_min, racks_enforced, locations_from"
_AUDITOR: Final = "the auditor here looks when something changes, and has limits of its own (bk autorecovery --help)"
_STATISTICS: Final = "every bookie shows its numbers, also under Apache's names, at the port of http_listen"
_STREAMS: Final = "of the table service inside Apache's server, which is not part of a bookie here"
_HTTP: Final = "of Apache's HTTP server; the one here is told in [http_api]"
_CHECKS: Final = "a bookie here checks what it believes of its disk at every start, and reads every byte once a week"

REASONS: Final[dict[str, str]] = {
    _JVM: "numAddWorkerThreads numReadWorkerThreads numLongPollWorkerThreads numHighPriorityWorkerThreads "
    "numWorkerThreads numIOThreads maxPendingReadRequestsPerThread maxPendingAddRequestsPerThread "
    "readWorkerThreadsThrottlingEnabled enableBusyWait serverNumIOThreads serverNumAcceptorThreads "
    "requestTimerTickDurationMs requestTimerNumTicks byteBufAllocatorSizeInitial byteBufAllocatorSizeMin "
    "byteBufAllocatorSizeMax allocatorPoolingPolicy allocatorPoolingConcurrency allocatorOutOfMemoryPolicy "
    "allocatorLeakDetectionPolicy allocatorExitOnOutOfMemory maxAddsInProgressLimit maxReadsInProgressLimit "
    "closeChannelOnResponseTimeout waitTimeoutOnResponseBackpressureMs preserveMdcForTaskExecution "
    "nettyUsePooledBuffers bookieDeathWatchInterval pcbcTimeoutTimerTickDurationMs pcbcTimeoutTimerNumTicks "
    "timeoutTimerTickDurationMs timeoutTimerNumTicks taskExecutionWarnTimeMicros enableTaskExecutionStats "
    "org.apache.bookkeeper.conf.readsystemproperties",
    _JOURNAL: "journalFormatVersionToWrite journalMaxSizeMB journalMaxBackups journalPreAllocSizeMB "
    "journalWriteBufferSizeKB journalRemoveFromPageCache journalWriteData journalSyncData journalAdaptiveGroupWrites "
    "journalMaxGroupWaitMSec journalBufferedWritesThreshold journalAlignmentSize journalBufferedEntriesThreshold "
    "journalFlushWhenQueueEmpty journalQueueSize journalMaxMemorySizeMb journalPageCacheFlushIntervalMSec "
    "journalReuseFiles numJournalCallbackThreads flushInterval flushEntrylogBytes",
    _CACHES: "ledgerStorageClass sortedLedgerStorageEnabled indexDirectories openFileLimit pageSize pageLimit "
    "fileInfoCacheInitialCapacity fileInfoMaxIdleTime fileInfoFormatVersionToWrite skipListSizeLimit "
    "skipListArenaChunkSize skipListArenaMaxAllocSize readBufferSizeBytes writeBufferSizeBytes "
    "entryLogFilePreallocationEnabled numOfMemtableFlushThreads entryLogPerLedgerCounterLimitsMultFactor "
    "allowMultipleDirsUnderSameDiskPartition dbStorage_writeCacheMaxSizeMb dbStorage_readAheadCacheMaxSizeMb "
    "dbStorage_readAheadCacheBatchBytesSize dbStorage_readAheadCacheBatchSize dbStorage_maxThrottleTimeMs "
    "dbStorage_directIOEntryLogger dbStorage_directIOEntryLoggerTotalWriteBufferSizeMB "
    "dbStorage_directIOEntryLoggerTotalReadBufferSizeMB dbStorage_directIOEntryLoggerReadBufferSizeMB "
    "dbStorage_directIOEntryLoggerMaxFdCacheTimeSeconds allowStorageExpansion",
    _ROCKSDB: "dbStorage_rocksDB_format_version dbStorage_rocksDB_checksum_type dbStorage_rocksDB_blockCacheSize "
    "dbStorage_rocksDB_writeBufferSizeMB dbStorage_rocksDB_sstSizeInMB dbStorage_rocksDB_blockSize "
    "dbStorage_rocksDB_bloomFilterBitsPerKey dbStorage_rocksDB_numLevels dbStorage_rocksDB_numFilesInLevel0 "
    "dbStorage_rocksDB_maxSizeInLevel1MB dbStorage_rocksDB_logPath dbStorage_rocksDB_logLevel entryLocationRocksdbConf "
    "ledgerMetadataRocksdbConf defaultRocksdbConf maxOperationNumbersInSingleRocksdbWriteBatch",
    _GARBAGE: "forceAllowCompaction compactionRate compactionRateByEntries compactionMaxOutstandingRequests "
    "entryLocationCompactionInterval useTransactionalCompaction gcMetadataOpRateLimit gcOverreplicatedLedgerWaitTime "
    "gcOverreplicatedLedgerMaxConcurrentRequests isForceGCAllowWhenNoSpace verifyMetadataOnGC "
    "gcEntryLogMetadataCacheEnabled gcEntryLogMetadataCachePath useTargetEntryLogSizeForGc localScrubRateLimit",
    _DISK: "diskUsageThreshold diskUsageWarnThreshold diskUsageLwmThreshold minUsableSizeForIndexFileCreation "
    "minUsableSizeForEntryLogCreation readOnlyModeOnAnyDiskFullEnabled",
    _SOCKETS: "serverTcpNoDelay serverSockKeepalive serverTcpKeepIdle serverTcpKeepIntvl serverTcpKeepCnt "
    "serverTcpLinger serverWriteBufferLowWaterMark serverWriteBufferHighWaterMark tcpKeepIdle tcpKeepIntvl tcpKeepCnt "
    "allowLoopback allowEphemeralPorts",
    _METADATA: "ledgerManagerFactoryClass ledgerManagerType allowShadedLedgerManagerFactoryClass "
    "shadedLedgerManagerFactoryClassPrefix ledgerManagerFactoryDisableClassCheck ledgerMetadataVersion "
    "metastoreImplClass metastoreMaxEntriesPerScan zkRetryBackoffStartMs zkRetryBackoffMaxMs zkRetryBackoffMaxRetries "
    "zkRequestRateLimit zkReplicationTaskRateLimit registrationManagerClass registrationClientClass "
    "storeSystemTimeAsLedgerCreationTime ledgerIdFormatterClass entryFormatterClass available",
    _CLIENT: "digestType passwd enableDigestTypeAutodetection throttle clientKeyStoreType clientKeyStore "
    "clientKeyStorePasswordPath clientTrustStoreType clientTrustStore clientTrustStorePasswordPath clientTcpNoDelay "
    "clientSockKeepalive clientSendBufferSize clientReceiveBufferSize clientWriteBufferLowWaterMark "
    "clientWriteBufferHighWaterMark clientConnectTimeoutMillis clientTcpUserTimeoutMillis numChannelsPerBookie "
    "useV2WireProtocol readTimeout speculativeReadTimeout firstSpeculativeReadTimeout maxSpeculativeReadTimeout "
    "speculativeReadTimeoutBackoffMultiplier firstSpeculativeReadLACTimeout maxSpeculativeReadLACTimeout "
    "speculativeReadLACTimeoutBackoffMultiplier enableParallelRecoveryRead recoveryReadBatchSize "
    "recoveryBatchReadEnabled batchReadEnabled opportunisticStriping delayEnsembleChange maxNumEnsembleChanges "
    " addEntryTimeoutSec addEntryQuorumTimeoutSec readEntryTimeoutSec "
    "timeoutMonitorIntervalSec timeoutTaskIntervalMillis explicitLacInterval waitTimeoutOnBackpressureMs "
    "bookieHealthCheckEnabled bookieHealthCheckIntervalSeconds bookieErrorThresholdPerInterval "
    "bookieQuarantineTimeSeconds bookieQuarantineRatio bookieConnectionErrorQuarantineEnabled "
    "getBookieInfoIntervalSeconds getBookieInfoRetryIntervalSeconds getBookieInfoTimeoutSecs startTLSTimeoutSecs "
    "tlsHostnameVerificationEnabled readReorderThresholdPendingRequests enableBookieFailureTracking "
    "bookieFailureHistoryExpirationMSec enableBookieAddressTracking disableEnsembleChangeFeatureName "
    "clientRole standard system clientAuthProviderFactoryClass clientConnectBookieUnavailableLogThrottling "
    "stickyReadSEnabled reorderReadSequenceEnabled bookieAddressResolverEnabled",
    _PLACEMENT: "ensemblePlacementPolicy reppDnsResolverClass networkTopologyScriptFileName "
    "networkTopologyScriptNumberArgs networkTopologyStabilizePeriodSeconds minNumRacksPerWriteQuorum "
    "enforceMinNumRacksPerWriteQuorum enforceMinNumFaultDomainsForWrite ignoreLocalNodeInPlacementPolicy "
    "minNumZonesPerWriteQuorum desiredNumZonesPerWriteQuorum enforceStrictZoneawarePlacement "
    "diskWeightBasedPlacementEnabled bookieMaxMultipleForWeightBasedPlacement "
    "useHostnameResolveLocalNodePlacementPolicy",
    _AUDITOR: "auditorPeriodicBookieCheckInterval auditorReplicasCheckInterval "
    "auditorMaxNumberOfConcurrentOpenLedgerOperations auditorAcquireConcurrentOpenLedgerOperationsTimeOutMSec "
    "lockReleaseOfFailedLedgerGracePeriod rwRereplicateBackoffMs rereplicationEntryBatchSize "
    "underreplicatedLedgerRecoveryGracePeriod storeSystemTimeAsLedgerUnderreplicatedMarkTime "
    "inFlightReadEntryNumInLedgerChecker",
    _STATISTICS: "sanityCheckMetricsEnabled limitStatsLogging prometheusStatsLatencyRolloverSeconds "
    "exposeDefaultJVMMetrics codahaleStatsPrefix codahaleStatsOutputFrequencySeconds codahaleStatsGraphiteEndpoint "
    "codahaleStatsCSVEndpoint codahaleStatsSlf4jEndpoint codahaleStatsJmxEndpoint enableHealthCheck",
    _STREAMS: "ignoreExtraServerComponentsStartupFailures storageserver.grpc.port dlog.bkcEnsembleSize "
    "dlog.bkcWriteQuorumSize dlog.bkcAckQuorumSize storage.range.store.dirs storage.serve.readonly.tables "
    "storage.cluster.controller.schedule.interval.ms",
    _HTTP: "httpServerClass httpServerPort httpServerHost httpServerTlsEnable httpServerKeyStorePath "
    "httpServerKeyStorePassword httpServerTrustStorePath httpServerTrustStorePassword",
    _CHECKS: "localConsistencyCheckOnStartup dataIntegrityChecking dataIntegrityStampMissingCookies",
    "the user that the unit names is the one that runs it, and a bookie beyond loopback refuses to run as root": (
        "permittedStartupUsers"
    ),
    "the library of TLS is OpenSSL": "tlsProvider",
}
"""Reason -> the settings that it stands for."""

NOTED: Final[dict[str, str]] = {name: reason for reason, names in REASONS.items() for name in names.split()}
"""Setting -> why it means nothing here."""
