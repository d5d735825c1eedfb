/* A stand-in for libnvidia-ml.so.1 on machines without GPUs: what the agent's NVML child calls, and no more.
 *
 * Its state is a struct in the file $FAKE_NVML_STATE, mapped shared, which harness.py edits while the agent runs:
 * GPUs can be lost, throttled or asked to reset, and any function can be made to fail or to hang.
 * Functions that are missing here give NVML_ERROR_FUNCTION_NOT_FOUND in the Python bindings. The numbers are nvml.h's.
 */
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAX_GPUS = 16, MAX_FAULTS = 32, MAGIC = 0x44415932, RECOVERY_ACTION_FIELD = 230, UNSIGNED_INT = 1 };

enum {
    SUCCESS = 0,
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    DRIVER_NOT_LOADED = 9,
    INSUFFICIENT_SIZE = 7,
    GPU_IS_LOST = 15,
};

typedef struct {
    char name[96], uuid[80], serial[32], bus_id[32];
    uint32_t lost, recovery_action, remap_pending, remap_failed;
    uint64_t clock_event_reasons;
    uint64_t ecc[2][2][8]; /* corrected or uncorrected, volatile or aggregate, place; 0 is the total here */
    uint32_t remapped[2], banks[5], retired[2], retirement_pending, sram_threshold;
    uint32_t temperature, utilisation, power_limit; /* C, percent, mW */
} gpu_t;

typedef struct {
    char function[64];
    int32_t gpu; /* -1: any */
    uint32_t result;
    uint32_t delay_ms;
    int32_t left; /* calls that are still to be hit; -1: all */
} fault_t;

typedef struct {
    uint32_t magic, gpu_count, fault_count, calls;
    char driver[80];
    gpu_t gpus[MAX_GPUS];
    fault_t faults[MAX_FAULTS];
} state_t;

static state_t *state;
static int initialised;

size_t fake_nvml_state_size(void) { return sizeof(state_t); }

static int load(void) {
    const char *path = getenv("FAKE_NVML_STATE");
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (state || file < 0) return state != NULL;
    void *mapped = mmap(NULL, sizeof(state_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (mapped == MAP_FAILED || ((state_t *)mapped)->magic != MAGIC) return 0;
    state = mapped;
    return 1;
}

/* Return what the test wants this call to fail with, after the delay that it wants. */
static int injected(const char *function, int gpu) {
    __sync_fetch_and_add(&state->calls, 1);
    for (uint32_t i = 0; i < state->fault_count && i < MAX_FAULTS; i++) {
        fault_t *fault = &state->faults[i];
        if (strcmp(fault->function, function) || (fault->gpu >= 0 && fault->gpu != gpu) || !fault->left) continue;
        if (fault->left > 0) __sync_fetch_and_sub(&fault->left, 1);
        usleep(fault->delay_ms * 1000u);
        return (int)fault->result;
    }
    return SUCCESS;
}

static int begin(const char *function, void *device, gpu_t **gpu) {
    if (!initialised) return UNINITIALIZED;
    int index = device ? (int)(intptr_t)device - 1 : -1;
    int result = injected(function, index);
    if (result || !gpu) return result;
    if (index < 0 || index >= MAX_GPUS || (uint32_t)index >= state->gpu_count) return INVALID_ARGUMENT;
    *gpu = &state->gpus[index];
    return (*gpu)->lost ? GPU_IS_LOST : SUCCESS;
}

static int copy(const char *function, void *device, char *target, unsigned length, size_t field) {
    gpu_t *gpu;
    int result = begin(function, device, &gpu);
    if (!result) snprintf(target, length, "%s", (const char *)gpu + field);
    return result;
}

int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    if (!load()) return DRIVER_NOT_LOADED;
    int result = injected(__func__, -1);
    initialised = !result;
    return result;
}

int nvmlShutdown(void) {
    initialised = 0;
    return SUCCESS;
}

const char *nvmlErrorString(int result) { return result == GPU_IS_LOST ? "GPU is lost" : "Fake error"; }

int nvmlSystemGetDriverVersion(char *version, unsigned length) {
    int result = begin(__func__, NULL, NULL);
    if (!result) snprintf(version, length, "%s", state->driver);
    return result;
}

int nvmlDeviceGetCount_v2(unsigned *count) {
    int result = begin(__func__, NULL, NULL);
    if (!result) *count = state->gpu_count;
    return result;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
    gpu_t *gpu;
    *device = (void *)(intptr_t)(index + 1);
    return begin(__func__, *device, &gpu);
}

int nvmlDeviceGetName(void *device, char *name, unsigned length) {
    return copy(__func__, device, name, length, offsetof(gpu_t, name));
}

int nvmlDeviceGetUUID(void *device, char *uuid, unsigned length) {
    return copy(__func__, device, uuid, length, offsetof(gpu_t, uuid));
}

int nvmlDeviceGetSerial(void *device, char *serial, unsigned length) {
    return copy(__func__, device, serial, length, offsetof(gpu_t, serial));
}

typedef struct {
    char legacy_bus_id[16];
    unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
    char bus_id[32];
} pci_t;

int nvmlDeviceGetPciInfo_v3(void *device, pci_t *pci) {
    memset(pci, 0, sizeof *pci);
    return copy(__func__, device, pci->bus_id, sizeof pci->bus_id, offsetof(gpu_t, bus_id));
}

int nvmlDeviceGetRemappedRows(void *device, unsigned *correctable, unsigned *uncorrectable, unsigned *pending,
                              unsigned *failed) {
    gpu_t *gpu;
    int result = begin(__func__, device, &gpu);
    if (result) return result;
    *correctable = gpu->remapped[0];
    *uncorrectable = gpu->remapped[1];
    *pending = gpu->remap_pending;
    *failed = gpu->remap_failed;
    return SUCCESS;
}

typedef struct {
    unsigned max, high, partial, low, none;
} banks_t;

int nvmlDeviceGetRowRemapperHistogram(void *device, banks_t *banks) {
    gpu_t *gpu;
    int result = begin(__func__, device, &gpu);
    if (!result) memcpy(banks, gpu->banks, sizeof *banks);
    return result;
}

int nvmlDeviceGetTotalEccErrors(void *device, unsigned kind, unsigned counter, unsigned long long *count) {
    gpu_t *gpu;
    int result = begin(__func__, device, &gpu);
    if (!result && (kind > 1 || counter > 1)) return INVALID_ARGUMENT;
    if (!result) *count = gpu->ecc[kind][counter][0];
    return result;
}

int nvmlDeviceGetMemoryErrorCounter(void *device, unsigned kind, unsigned counter, unsigned place,
                                    unsigned long long *count) {
    gpu_t *gpu;
    int result = begin(__func__, device, &gpu);
    if (!result && (kind > 1 || counter > 1 || place < 1 || place > 7)) return INVALID_ARGUMENT;
    if (!result) *count = gpu->ecc[kind][counter][place];
    return result;
}

typedef struct {
    unsigned version;
    unsigned long long counts[11];
    unsigned threshold_exceeded;
} sram_t;

size_t fake_nvml_sram_size(void) { return sizeof(sram_t); }

int nvmlDeviceGetSramEccErrorStatus(void *device, sram_t *status) {
    gpu_t *gpu;
    int result = begin(__func__, device, &gpu);
    if (result) return result;
    memset(status->counts, 0, sizeof status->counts);
    status->threshold_exceeded = gpu->sram_threshold;
    return SUCCESS;
}

int nvmlDeviceGetRetiredPages(void *device, unsigned cause, unsigned *count, unsigned long long *addresses) {
    gpu_t *gpu;
    int result = begin(__func__, device, &gpu);
    if (result) return result;
    unsigned found = gpu->retired[cause & 1], room = *count;
    *count = found;
    if (!addresses || room < found) return found ? INSUFFICIENT_SIZE : SUCCESS;
    for (unsigned i = 0; i < found; i++) addresses[i] = 0x1000ull * (i + 1);
    return SUCCESS;
}

int nvmlDeviceGetRetiredPagesPendingStatus(void *device, unsigned *pending) {
    gpu_t *gpu;
    int result = begin(__func__, device, &gpu);
    if (!result) *pending = gpu->retirement_pending;
    return result;
}

int nvmlDeviceGetCurrentClocksEventReasons(void *device, unsigned long long *reasons) {
    gpu_t *gpu;
    int result = begin(__func__, device, &gpu);
    if (!result) *reasons = gpu->clock_event_reasons;
    return result;
}

int nvmlDeviceGetTemperature(void *device, unsigned sensor, unsigned *temperature) {
    gpu_t *gpu;
    int result = begin(__func__, device, &gpu);
    if (!result && sensor) return INVALID_ARGUMENT;
    if (!result) *temperature = gpu->temperature;
    return result;
}

typedef struct {
    unsigned gpu, memory;
} utilisation_t;

int nvmlDeviceGetUtilizationRates(void *device, utilisation_t *rates) {
    gpu_t *gpu;
    int result = begin(__func__, device, &gpu);
    if (!result) *rates = (utilisation_t){gpu->utilisation, 0};
    return result;
}

int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *milliwatts) {
    gpu_t *gpu;
    int result = begin(__func__, device, &gpu);
    if (!result) *milliwatts = gpu->power_limit;
    return result;
}

typedef struct {
    unsigned field_id, scope_id;
    int64_t timestamp, latency_us;
    int value_type, result;
    union {
        double real;
        unsigned number;
        uint64_t wide;
    } value;
} field_t;

size_t fake_nvml_field_size(void) { return sizeof(field_t); }

size_t fake_nvml_pci_size(void) { return sizeof(pci_t); }

int nvmlDeviceGetFieldValues(void *device, int count, field_t *fields) {
    gpu_t *gpu;
    int result = begin(__func__, device, &gpu);
    for (int i = 0; !result && i < count; i++) {
        fields[i].result = fields[i].field_id == RECOVERY_ACTION_FIELD ? SUCCESS : NOT_SUPPORTED;
        fields[i].value_type = UNSIGNED_INT;
        fields[i].value.number = gpu->recovery_action;
    }
    return result;
}
