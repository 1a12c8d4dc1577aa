/**
 * The structures and constants of libfabric and Linux that we use, under their own names. Offsets are in bytes, on a
 * machine with 64-bit pointers. They are part of libfabric's stable binary interface; where its headers are installed,
 * `test/fabric/binary-interface.test.ts` compares every one with them.
 */

/** Offsets of fields. */
export const FIELDS = {
  fi_info: {
    caps: 8,
    addr_format: 24,
    src_addr: 48,
    dest_addr: 56,
    handle: 64,
    tx_attr: 72,
    ep_attr: 88,
    domain_attr: 96,
    fabric_attr: 104,
  },
  fi_tx_attr: { msg_order: 24, iov_limit: 56, rma_iov_limit: 64 },
  fi_ep_attr: { type: 0 },
  fi_domain_attr: { threading: 16, mr_mode: 36 },
  fi_fabric_attr: { prov_name: 16 },

  fid: { ops: 16 },
  fi_ops: { close: 8, bind: 16, control: 24 },
  fid_fabric: { ops: 24 },
  fi_ops_fabric: { domain: 8, passive_ep: 16, eq_open: 24, trywait: 40 },
  fid_domain: { ops: 24, mr: 32 },
  fi_ops_domain: { cq_open: 16, endpoint: 24 },
  fi_ops_mr: { reg: 8 },
  fid_mr: { mem_desc: 24, key: 32 },
  fid_pep: { cm: 32 },
  fid_ep: { cm: 32, rma: 48 },
  fi_ops_cm: { getname: 16, connect: 32, listen: 40, accept: 48, reject: 56 },
  fi_ops_rma: { readmsg: 24, writemsg: 48 },
  fid_cq: { ops: 24 },
  fi_ops_cq: { read: 8, readerr: 24 },
  fid_eq: { ops: 24 },
  fi_ops_eq: { read: 8, readerr: 16 },

  fi_cq_attr: { size: 0, format: 16, wait_obj: 20 },
  fi_eq_attr: { size: 0, wait_obj: 16 },
  fi_cq_err_entry: { op_context: 0, err: 56 },
  fi_eq_cm_entry: { fid: 0, info: 8, data: 16 },
  fi_eq_err_entry: { fid: 0, err: 24, err_data: 32, err_data_size: 40 },
  iovec: { iov_base: 0, iov_len: 8 },
  fi_rma_iov: { addr: 0, len: 8, key: 16 },
  fi_msg_rma: {
    msg_iov: 0,
    desc: 8,
    iov_count: 16,
    rma_iov: 32,
    rma_iov_count: 40,
    context: 48,
  },
  sockaddr_in: { sin_family: 0, sin_port: 2, sin_addr: 4 },
  pollfd: { fd: 0, events: 4 },
} as const;

/** Sizes of the structures that we make, or that libfabric writes into our memory. */
export const SIZES = {
  fi_cq_attr: 40,
  fi_eq_attr: 32,
  fi_cq_entry: 8,
  fi_cq_err_entry: 80,
  fi_eq_err_entry: 48,
  iovec: 16,
  fi_rma_iov: 24,
  fi_msg_rma: 64,
  sockaddr_in: 16,
  pollfd: 8,
} as const;

export const CONSTANTS = {
  FI_MSG: 2 ** 1,
  FI_RMA: 2 ** 2,
  FI_READ: 2 ** 8,
  FI_WRITE: 2 ** 9,
  FI_RECV: 2 ** 10,
  FI_TRANSMIT: 2 ** 11,
  FI_REMOTE_READ: 2 ** 12,
  FI_REMOTE_WRITE: 2 ** 13,
  FI_COMPLETION: 2 ** 24,
  FI_DELIVERY_COMPLETE: 2 ** 28,
  FI_SOURCE: 2 ** 57,
  FI_SELECTIVE_COMPLETION: 2 ** 59,

  FI_SOCKADDR_IN: 2,
  FI_EP_MSG: 1,
  FI_THREAD_DOMAIN: 3,
  FI_ORDER_RAW: 2 ** 1,
  FI_ORDER_WAW: 2 ** 4,

  FI_MR_LOCAL: 2 ** 2,
  FI_MR_VIRT_ADDR: 2 ** 4,
  FI_MR_ALLOCATED: 2 ** 5,
  FI_MR_PROV_KEY: 2 ** 6,

  FI_CQ_FORMAT_CONTEXT: 1,
  FI_WAIT_FD: 3,
  FI_GETWAIT: 5,
  FI_ENABLE: 6,
  FI_CONNREQ: 1,
  FI_CONNECTED: 2,
  FI_SHUTDOWN: 3,

  FI_EAVAIL: 259,
  AF_INET: 2,
  SOL_SOCKET: 1,
  SO_ACCEPTCONN: 30,
  SO_RCVTIMEO: 20,
  IPPROTO_TCP: 6,
  TCP_MAXSEG: 2,
  TCP_CORK: 3,
  TCP_DEFER_ACCEPT: 9,
  SHUT_RDWR: 2,
  POLLIN: 1,
} as const;
